#!/usr/bin/env bash
# Usage: vanish.sh IFMATCH DIRECTORY, in a network namespace of its own, as its root.
# A client on another machine holds a lease by a stream. Then that machine vanishes: no packet arrives from it any more, and
# nothing is closed. DIRECTORY has ifmatch.toml, and the document doc in www. Prints how long the lease was held after that.
set -euo pipefail
ifmatch=$1
cd "$2"
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT

# until SECONDS COMMAND...: repeats the command until it succeeds.
until_true() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        if [ "$SECONDS" -ge "$end" ]; then
            echo "in vain: $*" >&2
            cat events log >&2
            exit 1
        fi
        sleep 0.2
    done
}

state_is() { curl --silent --max-time 5 http://192.0.2.1:8080/.leases/doc | grep -q "\"state\":\"$1\""; }
is_granted() { grep -q '^event: granted' events; }
is_in_namespace() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }

ip link set lo up
ip link add name near type veth peer name far
ip address add 192.0.2.1/24 dev near
ip link set near up
unshare --net sleep infinity &
machine=$!
until_true 30 is_in_namespace "$machine"
ip link set far netns "$machine"
on_machine() { nsenter --net --target "$machine" "$@"; }
on_machine ip address add 192.0.2.2/24 dev far
on_machine ip link set far up

python3 -m http.server --directory www --bind 127.0.0.1 9000 >www.log 2>&1 &
"$ifmatch" run ifmatch.toml >log 2>&1 &
: >events
until_true 30 state_is available
nsenter --net --target "$machine" curl --silent --no-buffer --request POST --header 'Accept: text/event-stream' \
    http://192.0.2.1:8080/.leases/doc >events &
until_true 30 is_granted

on_machine ip link set far down
vanished=$SECONDS
state_is leased
until_true 180 state_is available
echo "held for $((SECONDS - vanished)) s"
