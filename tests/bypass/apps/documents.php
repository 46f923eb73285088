<?php
// Documents as a script of PHP keeps them, in files. Usage: DOCUMENTS=DIRECTORY php -S HOST:PORT documents.php
//
// /docs/ID and /document?doc_id=ID are one document. A POST to /docs names it in its body: the member or parameter `sku`.

$path = rawurldecode(parse_url($_SERVER["REQUEST_URI"], PHP_URL_PATH) ?: "");
$method = $_SERVER["REQUEST_METHOD"];
$body = file_get_contents("php://input");
if ($method === "POST" && isset($_SERVER["HTTP_X_HTTP_METHOD_OVERRIDE"])) {
    $method = strtoupper($_SERVER["HTTP_X_HTTP_METHOD_OVERRIDE"]);
}
if ($path === "/docs") {
    $sent = $_POST ?: json_decode($body, true);
    $name = is_array($sent) && isset($sent["sku"]) ? $sent["sku"] : null;
    $body = is_array($sent) && isset($sent["v"]) ? (string) json_encode($sent["v"]) : "";
    if ($method === "GET") $name = null;
} elseif ($path === "/document") {
    $name = $_GET["doc_id"] ?? null;
} else {
    $name = str_starts_with($path, "/docs/") ? substr($path, 6) : null;
}
if (!(is_string($name) || is_int($name)) || $name === "") {
    http_response_code(404);
    return;
}
$file = getenv("DOCUMENTS") . "/" . bin2hex((string) $name);
header("Content-Type: text/plain");
if ($method === "GET" || $method === "HEAD") {
    if (file_exists($file)) readfile($file); else http_response_code(404);
} elseif ($method === "DELETE") {
    http_response_code(@unlink($file) ? 204 : 404);
} elseif ($method !== "OPTIONS") {
    file_put_contents($file, $body, LOCK_EX);
    http_response_code(204);
}
