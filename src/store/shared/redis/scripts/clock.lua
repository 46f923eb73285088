-- KEYS: counter.
local time = redis.call('TIME')
return { 'clock', false, '0', redis.call('GET', KEYS[1]) or '0', time[1], time[2] }
