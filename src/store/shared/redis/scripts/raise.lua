-- KEYS: floors, counter. ARGV: first bucket, last bucket.
local time = redis.call('TIME')
-- Formatted as digits, because Lua would write a large number with an exponent.
local revision = string.format('%.0f', redis.call('INCR', KEYS[2]))
local floors = {}
for bucket = tonumber(ARGV[1]), tonumber(ARGV[2]) do
    floors[#floors + 1] = string.format('%.0f', bucket)
    floors[#floors + 1] = revision
end
redis.call('HSET', KEYS[1], unpack(floors))
return { 'raised', false, revision, revision, time[1], time[2] }
