# Everything that a developer runs. `make` alone lists it.

SHELL := /bin/bash
CARGO ?= cargo
# Debian keeps nginx where an ordinary user's PATH does not look.
export PATH := $(PATH):/usr/local/sbin:/usr/sbin:/sbin

# The name of the source in `ifmatch --version`; an archive of the source has no commit.
COMMIT = $(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null || echo unknown)

.DEFAULT_GOAL := help
.PHONY: help run example install dist clients test mutants mutants-of-change lint fmt book bench bench-dist bench-leases bench-resources bench-stores bench-webdav bench-watchers bare-machine bench-core floods fuzz fuzz-corpora simulate soak soak-downloads crash worker-locks job-queue azure-queue libreoffice differential histories histories-power setup-build setup-clients setup-compilers setup-packages setup-browser setup-engines setup-gateways setup-languages setup-test setup-bench setup-profile

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | while IFS=$$'\t' read -r target does; do \
		printf '  make %-18s %s\n' "$$target" "$$does"; done

# What `make run` and `make example` build needs no protoc, which .cargo/rustc would look for.
DEMO = IFMATCH_COMMIT=$(COMMIT) RUSTC_WORKSPACE_WRAPPER= $(CARGO) build --profile demo --no-default-features --locked

run: setup-compilers ## Build, and start the demo; UPSTREAM=http://host:port guards that server instead
	@[ -e target/demo/ifmatch ] || echo 'building a demo: 3 to 4 minutes on two cores, once'
	@$(DEMO)
	@echo 'this is $(abspath target/demo/ifmatch), built in a hurry: make install builds and installs one for daily use'
	@.ci/foreground target/demo/ifmatch $(if $(UPSTREAM),run --upstream '$(UPSTREAM)' --policy optimistic,demo)

install: PREFIX ?= /usr/local
install: PROGRAM ?= target/release/ifmatch
install: setup-build ## Build the program for daily use (10 minutes on two cores), and install it with its manual and completions; PREFIX=/usr/local
	@IFMATCH_COMMIT=$(COMMIT) $(CARGO) build --release --locked --bin ifmatch
	@install -D --mode=0755 $(PROGRAM) '$(DESTDIR)$(PREFIX)/bin/ifmatch'
	@$(PROGRAM) manual target/manual && \
		install -D --mode=0644 --target-directory='$(DESTDIR)$(PREFIX)/share/man/man1' target/manual/man/* && \
		install -D --mode=0644 target/manual/completions/ifmatch.bash '$(DESTDIR)$(PREFIX)/share/bash-completion/completions/ifmatch' && \
		install -D --mode=0644 --target-directory='$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d' target/manual/completions/ifmatch.fish && \
		install -D --mode=0644 --target-directory='$(DESTDIR)$(PREFIX)/share/zsh/site-functions' target/manual/completions/_ifmatch
	@echo 'installed: $(DESTDIR)$(PREFIX)/bin/ifmatch'

example: setup-compilers clients ## Build, and start a page with React whose notes several people edit (examples/notes)
	@$(DEMO)
	@npm run --silent --prefix examples/notes build
	@echo 'Open http://127.0.0.1:8080/?name=Ann and http://127.0.0.1:8080/?name=Ben'
	@.ci/foreground examples/notes/start target/demo/ifmatch

dist: target/profiled/ifmatch setup-packages setup-clients ## Build the packages: .deb, .tar.gz, npm, PyPI, line tables, bill of materials, checksums (25 minutes; target/dist)
	deploy/packages/build target/profiled/ifmatch target/dist
	@ls -l target/dist

# The script knows what has changed.
.PHONY: target/profiled/ifmatch
target/profiled/ifmatch: setup-build setup-profile
	CARGO='$(CARGO)' IFMATCH_COMMIT=$(COMMIT) deploy/packages/profile-guided target/profiled

clients: setup-clients ## Build the package for TypeScript (clients/typescript/dist; docs/clients.md)
	npm run --silent --prefix clients/typescript build

test: setup-build setup-test ## Run all tests
	$(CARGO) test --locked

mutants: setup-build setup-test ## Break the code in each place of the list, and see which test finds it; MUTANTS=part-of-name-or-file (docs/mutants.md)
	MUTANTS='$(or $(MUTANTS),full)' $(CARGO) test --locked --test mutants a_test_finds -- --nocapture

# The unit tests alone judge: a build of all tests for each mistake would take hours.
mutants-of-change: setup-build ## Break each function that differs from SINCE (main), and see whether a unit test fails (minutes a function; docs/mutants.md)
	@$(CARGO) mutants --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-mutants
	@mkdir -p target/mutants && git diff $(or $(SINCE),main) -- src > target/mutants/change.diff
	$(CARGO) mutants --in-diff target/mutants/change.diff --output target/mutants -- --lib

simulate: setup-build ## Run the production guard through every schedule of two requests, and 2,000,000 random ones (hours; docs/simulation.md)
	SIMULATE=full $(CARGO) test --locked --profile simulation --test simulation -- --nocapture --test-threads=1

# The second clippy looks at what `make run` builds.
lint: setup-build ## Check the format, the lints, the mutants' code, the documentation and its English, warnings denied
	@$(CARGO) fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@$(CARGO) clippy --version >/dev/null 2>&1 || rustup component add clippy
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	MUTANTS=compile $(CARGO) test --locked --test mutants all_mutants_compile
	$(CARGO) clippy --locked --no-default-features -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --no-deps
	$(CARGO) test --locked --test documents -- links prose

fmt: ## Format the code
	$(CARGO) fmt --all
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml

# Pages link to files beside docs/, so these are put beside the built pages. Markdown among them is not rendered.
book: MDBOOK := 0.4.52
book: setup-build ## Build the documents as a website, target/book/docs/index.html
	@mdbook --version 2>/dev/null | grep -qx 'mdbook v$(MDBOOK)' || \
		$(CARGO) install --locked mdbook --version $(MDBOOK) --no-default-features --features search
	mdbook build
	@cp -r *.md config deploy target/book/ && cp --parents clients/*/README.md examples/notes/README.md target/book/ && mkdir -p target/book/fuzz && cp fuzz/README.md target/book/fuzz/
	@find target/book/docs -name '*.html' -exec \
		sed -i -E 's#(href="(\.\./)+(fuzz/|clients/[a-z]+/|examples/notes/)?[A-Z]+)\.html#\1.md#g' {} +

bench: setup-build setup-bench ## Measure what a request costs, beside nginx, HAProxy, Redis and etcd (20 minutes), and write docs/benchmarks.md
	$(CARGO) build --release --locked --bin ifmatch --example bare_pingora --example lease_load --example store_load --example record_load
	@IFMATCH='$(IFMATCH)' benches/load.py $(or $(BENCH_GROUPS),--page docs/benchmarks.md)

bench-dist: target/profiled/ifmatch ## The same for the program that `make dist` packages (40 minutes)
	@$(MAKE) --no-print-directory bench IFMATCH=$(abspath target/profiled/ifmatch)

bench-leases: BENCH_GROUPS := leases held
bench-leases: bench ## The same for leases alone, beside Redis (1 minute)

bench-resources: BENCH_GROUPS := resources
bench-resources: export RESOURCES ?= 10000000
bench-resources: bench ## The same for ten million resources in the memory store (1 minute)

bench-stores: BENCH_GROUPS := stores
bench-stores: bench ## The same for the stores, beside what etcd, Redis and the disk can do (5 minutes)

bench-webdav: setup-build setup-test ## Measure a list of 1,000 files of WebDAV, beside the server alone (1 minute; docs/webdav.md)
	$(CARGO) build --release --locked --bin ifmatch
	benches/webdav.py $(or $(IFMATCH),target/release/ifmatch) target/python/bin/wsgidav

bench-watchers: setup-build ## Measure the memory of idle watchers, and how soon a change reaches 1,000 of them (1 minute; docs/watch.md)
	@.ci/install python3=python3
	$(CARGO) build --release --locked --bin ifmatch
	ulimit -n 20000; python3 benches/load/watchers.py $(or $(IFMATCH),target/release/ifmatch)

soak-downloads: setup-build setup-test ## Watch the memory of 100 downloads of 100 MB each
	DOWNLOAD_CLIENTS=100 DOWNLOAD_MEBIBYTES=100 $(CARGO) test --locked --test proxy p22_memory -- --nocapture

soak: setup-build setup-test ## Load with leases, aborts and reloads for 10 minutes: memory and descriptors stay flat (docs/reload.md)
	SOAK_SECONDS=600 $(CARGO) test --locked --test load does_not_grow -- --nocapture

floods: setup-build setup-test ## Flood the proxy in every way that the tests know, with three to ten times as much (5 minutes; docs/floods.md)
	FLOODS=full $(CARGO) test --locked --test floods -- --nocapture --test-threads=1

# The readers hold no unsafe code, so a sanitizer would find nothing: a stable compiler does.
fuzz: FUZZ_SECONDS := 1800
fuzz: setup-build ## Fuzz each reader of what others send for FUZZ_SECONDS (half an hour each; fuzz/README.md)
	@$(CARGO) fuzz --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-fuzz
	for target in $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs))); do \
		mkdir -p fuzz/corpus/$$target && tar -xzf fuzz/corpora/$$target.tar.gz -C fuzz/corpus && \
		RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run --sanitizer none $$target fuzz/corpus/$$target fuzz/seeds/$$target -- \
			-max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=4096 || exit 1; \
	done

fuzz-corpora: setup-build ## Keep the smallest inputs that reach what the fuzzer has reached (fuzz/README.md)
	for target in $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs))); do \
		RUSTC_BOOTSTRAP=1 $(CARGO) fuzz cmin --sanitizer none $$target && \
		tar -C fuzz/corpus --sort=name --mtime=@0 --owner=0 --group=0 -czf fuzz/corpora/$$target.tar.gz $$target || exit 1; \
	done

crash: setup-build setup-test ## Kill a proxy with leases on disk 200 times, and look what is left (2 minutes)
	IFMATCH_CRASHES=200 $(CARGO) test --locked --test proxy survives_any_crash -- --nocapture

worker-locks: setup-build setup-test ## Kill 60 workers, proxies and engines under a pool of workers on each store (2 minutes)
	IFMATCH_KILLS=60 $(CARGO) test --locked --test proxy lose_no_exclusion -- --nocapture

job-queue: setup-build setup-test ## Drain queues of 10,000 jobs with 32 workers, also while workers and a proxy are killed (5 minutes)
	IFMATCH_JOBS=10000 $(CARGO) test --locked --test proxy of_many_workers_each -- --nocapture
	IFMATCH_JOBS=10000 $(CARGO) test --locked --test proxy each_job_is_finished_once -- --nocapture

azure-queue: setup-build setup-test ## Drain Azure queues of 10,000 messages with 32 workers, also while workers and a proxy are killed (5 minutes)
	IFMATCH_JOBS=10000 $(CARGO) test --locked --test proxy of_many_workers_on_a_queue -- --nocapture
	IFMATCH_JOBS=10000 $(CARGO) test --locked --test proxy each_message_is_finished_once -- --nocapture

libreoffice: setup-build ## Let LibreOffice edit a document through the proxy while another client tries to (1 minute; docs/webdav.md)
	@.ci/install nginx=nginx soffice=libreoffice-writer-nogui
	@[ -e /usr/lib/nginx/modules/ngx_http_dav_ext_module.so ] || .ci/install nginx-dav-ext=libnginx-mod-http-dav-ext
	@[ -e /usr/lib/python3/dist-packages/uno.py ] || .ci/install uno=python3-uno
	$(CARGO) build --locked --bin ifmatch
	/usr/bin/python3 tests/webdav/libreoffice.py target/debug/ifmatch

histories: setup-build setup-test ## Kill and stop proxies and their engine, also under 48 configurations by chance, and check every history (20 minutes; docs/histories.md)
	IFMATCH_CONFIGURATIONS=48 IFMATCH_OPERATIONS=2100 $(CARGO) test --locked --test histories generated -- --nocapture
	IFMATCH_DISTURBANCES=200 $(CARGO) test --locked --test histories keep_the_promise -- --nocapture --test-threads=1 --skip generated
	IFMATCH_PROXIES=4 IFMATCH_WRITERS=16 $(CARGO) test --locked --test histories turns -- --nocapture

# The program is built once, with a switch for each fault.
histories-power: setup-build setup-test ## Plant each known kind of fault, and see with how many of SEEDS seeds the histories find it (hours; docs/histories.md)
	IFMATCH_FAULT_SEEDS=$(or $(SEEDS),100) $(CARGO) test --locked --test histories untrue_configurations -- --nocapture
	MUTANTS_SEEDS=$(or $(SEEDS),100) $(CARGO) test --locked --test mutants generated_histories_find -- --nocapture

differential: setup-build setup-test ## Compare how servers read 100,000 odd requests, and send 100,000 that could bypass a lease (10 minutes; docs/http.md)
	IFMATCH_DIFFERENTIAL=100000 $(CARGO) test --locked --test differential --test bypass -- --nocapture

bare-machine: ## Do all that a newcomer does on a Debian with make and Rust alone (needs root; 1 hour)
	.ci/bare-machine $(or $(BARE_MACHINE),target/bare-machine) .ci/bare-machine-test

bench-core: setup-build ## Measure the core and the store alone
	$(CARGO) bench --locked

# The demo has no store that several proxies share, and so no protocol of etcd to compile.
setup-compilers:
	@command -v $(CARGO) >/dev/null || { echo 'cargo is missing: install Rust, see https://rustup.rs' >&2; exit 1; }
	@.ci/install cc=build-essential cmake=cmake

setup-build: setup-compilers ## Install what the build needs and is missing (Debian packages)
	@.ci/install protoc=protobuf-compiler
	@[ -e /usr/include/google/protobuf/descriptor.proto ] || .ci/install protobuf=libprotobuf-dev

# The tools that build and test the packages of clients/.
setup-clients:
	@.ci/clients packages

setup-test: setup-browser setup-engines setup-gateways setup-languages setup-packages ## Install what the tests need and is missing (Debian packages, PyPI, npm)
	@.ci/install curl=curl nginx=nginx apache2=apache2-bin python3=python3 promtool=prometheus rclone=rclone litmus=litmus cadaver=cadaver git=git git-lfs=git-lfs mount.davfs=davfs2 gio=libglib2.0-bin dbus-run-session=dbus-daemon systemd-analyze=systemd ip=iproute2 groff=groff-base lighttpd=lighttpd
	@[ -e /usr/lib/lighttpd/mod_webdav.so ] || .ci/install lighttpd-webdav=lighttpd-mod-webdav
	@[ -e /usr/lib/nginx/modules/ngx_http_dav_ext_module.so ] || .ci/install nginx-dav-ext=libnginx-mod-http-dav-ext
	@nginx -V 2>&1 | grep -q -- --with-http_dav_module || \
		{ echo 'this nginx has no dav module, which the tests write through; Debian builds it in' >&2; exit 1; }
	@[ -e /usr/libexec/gvfsd-dav ] || .ci/install gvfsd-dav=gvfs-backends
	@.ci/clients

# Compilers bring along the rest: objcopy, and the tools that make Debian packages.
setup-packages:
	@.ci/install python3=python3

# The servers in front of ifmatch in the tests of `ifmatch doctor`.
setup-gateways:
	@.ci/install haproxy=haproxy varnishd=varnish caddy=caddy

setup-engines:
	@.ci/install etcd=etcd-server etcdctl=etcd-client pg_ctlcluster=postgresql psql=postgresql-client redis-server=redis-server redis-cli=redis-tools openssl=openssl

# The runtimes of the programs in docs/own-client.md and of the applications in tests/bypass, beside those of the other tests.
setup-languages:
	@.ci/install go=golang-go jq=jq php=php-cli

setup-browser:
	@.ci/install chromium=chromium

setup-profile: ## Install what the profile-guided build needs and is missing (Debian packages)
	@.ci/install python3=python3 wrk=wrk nginx=nginx redis-server=redis-server h2load=nghttp2-client openssl=openssl llvm-profdata-19=llvm-19

setup-bench: ## Install what the comparison needs and is missing (Debian packages)
	@.ci/install python3=python3 wrk=wrk h2load=nghttp2-client openssl=openssl haproxy=haproxy nginx=nginx redis-server=redis-server redis-cli=redis-tools etcd=etcd-server pg_ctlcluster=postgresql
	@[ -e /usr/lib/nginx/modules/ngx_http_lua_module.so ] || .ci/install nginx-lua=libnginx-mod-http-lua
