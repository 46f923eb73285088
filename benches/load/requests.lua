-- wrk -s requests.lua URL -- METHOD [NAME VALUE]...   one request, over and over
-- wrk -s requests.lua URL -- update                   each thread (one connection) reads a resource of its own, then
--                                                     writes it again and again with the tag of the last answer
-- The last line of the output: requests, answers above 399, other answers than expected, broken connections.

local body = string.rep("x", 200)
local threads = {}

function setup(thread)
  table.insert(threads, thread)
  thread:set("number", #threads)
end

function init(arguments)
  unexpected = 0
  if arguments[1] ~= "update" then
    wrk.method = arguments[1]
    for place = 2, #arguments, 2 do wrk.headers[arguments[place]] = arguments[place + 1] end
    if wrk.method == "PUT" then wrk.body = body end
    return
  end
  local tag
  local path = wrk.path .. number
  request = function()
    if not tag then return wrk.format("GET", path) end
    return wrk.format("PUT", path, { ["If-Match"] = tag ~= "" and tag or nil }, body)
  end
  response = function(status, fields)
    if status < 200 or status > 299 then unexpected = unexpected + 1 end
    tag = fields["ETag"] or fields["etag"] or ""
  end
end

function done(summary)
  local wrong = 0
  for _, thread in ipairs(threads) do wrong = wrong + thread:get("unexpected") end
  local errors = summary.errors
  local broken = errors.connect + errors.read + errors.write + errors.timeout
  print(string.format("%d %d %d %d", summary.requests, errors.status, wrong, broken))
end
