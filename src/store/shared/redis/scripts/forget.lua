-- KEYS: record, floors, records, idle. ARGV: bucket, resource, the idle time in milliseconds.
local time = redis.call('TIME')
local last = time[1] * 1000 + math.floor(time[2] / 1000) - ARGV[3]
local since = redis.call('ZSCORE', KEYS[4], ARGV[2])
if not since or tonumber(since) > last then
    return 0
end
local record = redis.call('GET', KEYS[1])
if record then
    local revision = string.match(record, '^%d+')
    if tonumber(revision) > tonumber(redis.call('HGET', KEYS[2], ARGV[1]) or '0') then
        redis.call('HSET', KEYS[2], ARGV[1], revision)
    end
    redis.call('DEL', KEYS[1])
end
redis.call('ZREM', KEYS[3], ARGV[2])
redis.call('ZREM', KEYS[4], ARGV[2])
return 1
