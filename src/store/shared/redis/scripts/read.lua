-- KEYS: record, floors, counter. ARGV: bucket.
local time = redis.call('TIME')
-- A replica may be behind, and refuses what may write. At a primary this changes nothing.
redis.call('PERSIST', KEYS[3])
local record = redis.call('GET', KEYS[1])
local floor = record and '0' or redis.call('HGET', KEYS[2], ARGV[1]) or '0'
return { 'read', record, floor, redis.call('GET', KEYS[3]) or '0', time[1], time[2] }
