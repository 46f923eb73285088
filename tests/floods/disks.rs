//! Full disks: those of the store and of the spool (DESIGN, section 3, rule 15).

use std::{collections::BTreeMap, fs, time::Duration};

use tokio::time::sleep;

use crate::{
    arena::{Arena, Ceiling, HONEST_WAIT, times},
    leases::LEASED,
    requests::{exchange, request, requests},
    small_disk::SmallDisk,
    sockets::{FLOOD, connect_from},
    support::{proxy::Proxy, raw::send, wait::DEADLINE},
};

fn acquire(number: usize) -> Vec<u8> {
    request("POST", &format!("/.leases/leased/{number:0>7000}"), "Lease-Duration: infinite\r\n", "")
}

/// Clients that go on to ask for leases while the disk has no room: the file stays as it is, what was granted holds, and
/// with room again there are grants again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_of_the_store_costs_nothing_and_recovers() {
    let Some(disk) = SmallDisk::mount(64) else { return };
    let file = disk.path().join("leases");
    let store = format!("kind = \"disk\"\npath = \"{}\"", file.display());
    let many = format!("{LEASED}max_per_principal = 1000000\n");
    let arena = Arena::before("", |setup| setup.store(&store), &many, None).await;
    disk.fill();
    let length = fs::metadata(&file).expect("the file").len();
    let count = times(1_500, 20_000);
    let ceiling = Ceiling { resident_mib: 80, descriptors: 60, honest_wait: HONEST_WAIT };
    let (answers, _) = arena.flood("leases on a full disk", ceiling, requests(arena.addr(), count, acquire)).await;
    let granted = answers[&201];
    assert_eq!(answers, BTreeMap::from([(201, granted), (503, count - granted)]));
    assert!((400..620).contains(&granted), "{granted} leases of 7 KB in a region of 4 MiB");
    assert_eq!(fs::metadata(&file).expect("the file").len(), length);
    disk.make_room();
    let mut stream = connect_from(FLOOD, arena.addr()).await.expect("it is let in");
    // Some of these may still find room in the present region.
    let (mut more, mut waited) = (0, Duration::ZERO);
    loop {
        let is_granted = exchange(&mut stream, &acquire(count + more)).await.0 == 201;
        if is_granted && fs::metadata(&file).expect("the file").len() > length {
            break;
        }
        if is_granted {
            more += 1;
            assert!(more < 620, "a region of 4 MiB had room for {granted} leases and {more} more");
        } else {
            assert!(waited < DEADLINE, "it does not recover");
            sleep(Duration::from_millis(100)).await;
            waited += Duration::from_millis(100);
        }
    }
}

/// Bodies that do not fit on the disk are refused before the backend sees a byte, and take nothing with them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_of_the_spool_refuses_untouched_and_recovers() {
    const BODY_BYTES: usize = 600_000;
    let Some(disk) = SmallDisk::mount(4) else { return };
    let spool = disk.path().display().to_string();
    let configuration = |addr| {
        let setup = Proxy::to(addr).server("max_body_memory = \"64KiB\"").route("require = \"never\"");
        setup.configuration().replace("{spool}", &spool)
    };
    let arena = Arena::with(configuration, None).await;
    disk.fill();
    let count = times(60, 2_000);
    let ceiling = Ceiling { resident_mib: 24, descriptors: 60, honest_wait: HONEST_WAIT };
    let body = "x".repeat(BODY_BYTES);
    let flood = requests(arena.addr(), count, move |number| request("PUT", &format!("/large/{number}"), "", &body));
    let (answers, _) = arena.flood("bodies on a full disk", ceiling, flood).await;
    assert_eq!(answers, BTreeMap::from([(503, count)]));
    assert!(arena.backend.requests().iter().all(|request| !request.target.starts_with("/large/")));
    disk.make_room();
    for number in 0..20 {
        let target = format!("/again/{number}");
        let written = send(arena.addr(), "PUT", &target, &[], "x".repeat(BODY_BYTES)).await;
        assert_eq!(written.status, 201, "the room of each body is given back");
    }
}
