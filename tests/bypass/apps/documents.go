// Documents as a server of Go's net/http keeps them. Usage: documents HOST:PORT
//
// /docs/ID and /document?doc_id=ID are one document. A POST to /docs names it in its body: the member or parameter `sku`.
package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
)

var (
	lock      sync.Mutex
	documents = map[string]string{}
)

func act(response http.ResponseWriter, method, name, body string) {
	lock.Lock()
	defer lock.Unlock()
	text, exists := documents[name]
	switch {
	case name == "":
		response.WriteHeader(404)
	case method == "GET" || method == "HEAD":
		if !exists {
			response.WriteHeader(404)
			return
		}
		response.Header().Set("Content-Type", "text/plain")
		io.WriteString(response, text)
	case method == "DELETE":
		delete(documents, name)
		response.WriteHeader(204)
	case method == "OPTIONS":
		response.WriteHeader(204)
	default:
		documents[name] = body
		response.WriteHeader(204)
	}
}

func text(request *http.Request) string {
	body, _ := io.ReadAll(request.Body)
	return string(body)
}

func collection(response http.ResponseWriter, request *http.Request) {
	if request.Method != "POST" && request.Method != "PUT" {
		io.WriteString(response, "a list")
		return
	}
	var sent struct {
		Sku string `json:"sku"`
		V   string `json:"v"`
	}
	if strings.Contains(request.Header.Get("Content-Type"), "form") {
		sent.Sku, sent.V = request.FormValue("sku"), request.FormValue("v")
	} else if json.NewDecoder(request.Body).Decode(&sent) != nil && sent.Sku == "" {
		response.WriteHeader(400)
		return
	}
	act(response, request.Method, sent.Sku, sent.V)
}

func main() {
	routes := http.NewServeMux()
	routes.HandleFunc("/docs/", func(response http.ResponseWriter, request *http.Request) {
		act(response, request.Method, strings.TrimPrefix(request.URL.Path, "/docs/"), text(request))
	})
	routes.HandleFunc("/document", func(response http.ResponseWriter, request *http.Request) {
		act(response, request.Method, request.URL.Query().Get("doc_id"), text(request))
	})
	routes.HandleFunc("/docs", collection)
	if err := http.ListenAndServe(os.Args[1], routes); err != nil {
		panic(err)
	}
}
