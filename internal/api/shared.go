package api

import (
	"cmp"

	"github.com/jig-run/jig"
)

// Idempotent holds the header of requests that start something.
type Idempotent struct {
	Key string `header:"Idempotency-Key" maxLength:"255" pattern:"^[!-~]+$" doc:"Repeating a request with the same key returns what the first one started. Use it instead of an id."`
}

// CallHeaders holds the headers of every operation that makes a call.
type CallHeaders struct {
	Idempotent
	Prefer string `header:"Prefer" maxLength:"200" doc:"wait=SECONDS waits up to that long for the result, at most 60 seconds"`
}

// SessionPath names a session in the path.
type SessionPath struct {
	Session string `path:"session" names:"session" maxLength:"192" doc:"The id of the session"`
}

// Page holds the parameters of lists.
type Page struct {
	Cursor string `query:"cursor" maxLength:"2000" doc:"next_cursor of the previous page, with the same filter"`
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"40" doc:"The maximum number of entries. A page may have fewer even if more follow"`
}

// Origin says how a client starts something.
type Origin struct {
	Source jig.Source `json:"source,omitempty" enum:"api,cli,web" doc:"The kind of client, as it claims. Default: api"`
}

// From returns the source, or its default.
func (o Origin) From() jig.Source { return cmp.Or(o.Source, jig.SourceAPI) }
