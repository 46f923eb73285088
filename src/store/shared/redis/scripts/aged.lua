-- KEYS: idle. ARGV: the idle time in milliseconds, the maximum number of resources.
local time = redis.call('TIME')
local last = time[1] * 1000 + math.floor(time[2] / 1000) - ARGV[1]
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', last), 'LIMIT', 0, ARGV[2])
