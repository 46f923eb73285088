//! The facts that a document does not state, and the settings for them.

/// A fact that a document does not state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UndecidedPoint {
    Batch,
    ReadsByPost,
    BackendLocks,
    Creates,
    NamesNoResource,
    AppendsOrReplaces,
    PostBesideOthers,
    ChangesMembers,
    ListOfBodies,
    OtherBodies,
    Multipart,
    File,
    Streams,
    Wider,
    Crossing,
    NoRoute,
    Elsewhere,
}

impl UndecidedPoint {
    /// Returns the missing fact, and the settings for it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Batch => {
                "One request may change several resources, whose versions it does not name. These pass unguarded. Name \
                 the resources in also_changes, or refuse the requests."
            }
            Self::ReadsByPost => "The name of the path says that it only reads. These pass unguarded.",
            Self::BackendLocks => {
                "The backend has locks of its own. These pass unguarded. To have ifmatch grant leases instead, write \
                 policy = \"pessimistic\" on the route of the resource."
            }
            Self::Creates => {
                "The request adds a member to a list that no GET reads. It needs no version. These pass unguarded."
            }
            Self::NamesNoResource => {
                "The path names no resource that others can read and write. These pass unguarded. If one of them changes \
                 a resource above, give it a route with also_changes."
            }
            Self::AppendsOrReplaces => {
                "A POST to this path may add something, or replace what GET reads. These pass unguarded. If it replaces, \
                 give the path a route with append_methods = [] and require_methods = [\"POST\"]."
            }
            Self::PostBesideOthers => {
                "The resource has POST beside PUT or PATCH. The POST waits for its turn and needs no precondition. If it \
                 replaces, add \"POST\" to require_methods. If it only adds, leave append_methods out."
            }
            Self::ChangesMembers => {
                "The request may change members of a collection, and has the version of the collection alone. If that is \
                 not enough, refuse it at the backend."
            }
            Self::ListOfBodies => {
                "The body is a list: one request may change several resources, whose versions it does not name."
            }
            Self::OtherBodies => {
                "The body may be something else than JSON. ifmatch reads the name of the member in it, and refuses all but \
                 JSON with 415."
            }
            Self::Multipart => {
                "The body is a form of several parts. A form with a field _method is refused (method_override). A large \
                 upload needs max_body_size."
            }
            Self::File => {
                "The content is a file, and may be larger than max_hash_size. Without other writers, etag = \"version\" \
                 needs no hash."
            }
            Self::Streams => "The answer may be a stream, which gets no tag of its content.",
            Self::Wider => {
                "The route takes more than the path of the document, which has other text in the segment of a name."
            }
            Self::Crossing => {
                "The path and that of another route match common requests, and neither is more specific. These have no \
                 route of their own."
            }
            Self::NoRoute => "No route can have this path. These pass unguarded.",
            Self::Elsewhere => {
                "The operation is on another server than the document. These need an upstream of their own."
            }
        }
    }
}
