-- KEYS: counter, records.
local time = redis.call('TIME')
-- A replica may be behind, and refuses what may write. At a primary this changes nothing.
redis.call('PERSIST', KEYS[1])
local texts = {}
for number = 2, #KEYS do
    texts[number - 1] = redis.call('GET', KEYS[number])
end
return { texts, redis.call('GET', KEYS[1]) or '0', time[1], time[2] }
