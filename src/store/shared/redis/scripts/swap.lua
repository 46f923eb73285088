-- KEYS: record, floors, counter, records, idle.
-- ARGV: bucket, expected revision, text, the time from which it is idle or '', resource, capacity, channel.
local time = redis.call('TIME')
local record = redis.call('GET', KEYS[1])
-- The floor matters only if there is no record.
local floor = record and '0' or redis.call('HGET', KEYS[2], ARGV[1]) or '0'
local function answer(what)
    -- A replica may be behind, and refuses what may write. At a primary this changes nothing. As the first command that may
    -- write, before the swap, it would let the swap exceed the memory limit of the server.
    redis.call('PERSIST', KEYS[3])
    return { what, record, floor, redis.call('GET', KEYS[3]) or '0', time[1], time[2] }
end

local current = record and string.match(record, '^%d+') or floor
if current ~= ARGV[2] then
    return answer('conflict')
end
if not record and redis.call('ZCARD', KEYS[4]) >= tonumber(ARGV[6]) then
    return answer('full')
end

-- Formatted as digits, because Lua would write a large number with an exponent.
local revision = string.format('%.0f', redis.call('INCR', KEYS[3]))
redis.call('SET', KEYS[1], revision .. ' ' .. ARGV[3])
if not record then
    redis.call('ZADD', KEYS[4], 0, ARGV[5])
end
if ARGV[4] == '' then
    redis.call('ZREM', KEYS[5], ARGV[5])
else
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    redis.call('ZADD', KEYS[5], math.max(now, tonumber(ARGV[4])), ARGV[5])
end
redis.call('PUBLISH', ARGV[7], ARGV[5])
return { 'done', false, floor, revision, time[1], time[2] }
