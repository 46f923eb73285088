use super::{AmbiguousTarget::*, PathParameters::*, *};

#[test]
fn quick() {
    assert_eq!(normalize(b"/%61", Refuse).unwrap().as_str(), "/a");
    assert_eq!(normalize(b"/a/../..", Refuse), Err(AboveRoot));
}
