-- KEYS: record, floors, counter. ARGV: bucket.
local time = redis.call('TIME')
local floor = redis.call('HGET', KEYS[2], ARGV[1]) or '0'
local counter = redis.call('GET', KEYS[3]) or '0'
return { 'read', redis.call('GET', KEYS[1]), floor, counter, time[1], time[2] }
