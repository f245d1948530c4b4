package approval

// Status is the state of an approval.
type Status string

// The states of an approval. An approved approval becomes consumed when its call begins.
const (
	Open     Status = "open"
	Approved Status = "approved"
	Denied   Status = "denied"
	Expired  Status = "expired"
	Canceled Status = "canceled"
	Consumed Status = "consumed"
)
