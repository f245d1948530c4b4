package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/jig-run/jig"
)

// Head is the end of a chain, or any place in it: a row's number and its hash, in hex. Row 0 is what the first row follows.
type Head struct {
	N    int64  `json:"n"`
	Hash string `json:"hash"`
}

// String is the head as people note it.
func (h Head) String() string { return fmt.Sprintf("row %d, %s", h.N, h.Hash) }

// check says what is wrong with a head, in words that follow its name; "" when nothing is.
func (h Head) check() string {
	if h.N < 0 {
		return fmt.Sprintf("counts %d rows", h.N)
	}
	if _, ok := parseHash(h.Hash); !ok {
		return fmt.Sprintf("has the hash %q, which is not 64 hex digits in lower case", shorten(h.Hash))
	}
	return ""
}

// Broken is the first thing that is wrong with a chain.
type Broken struct {
	// N is the number of the row that is not in order; 0 when no single row is to blame.
	N int64 `json:"n"`
	// Problem says what is wrong, in words that follow "row N: ".
	Problem string `json:"problem"`
}

// String names the row and says what is wrong with it.
func (b Broken) String() string {
	if b.N == 0 {
		return b.Problem
	}
	return fmt.Sprintf("row %d: %s", b.N, b.Problem)
}

func broken(n int64, format string, args ...any) *Broken {
	return &Broken{N: n, Problem: fmt.Sprintf(format, args...)}
}

// Chain checks the rows of a tenant, one after the other, and keeps nothing of them but the last hash.
type Chain struct {
	tenant string
	n      int64
	hash   [sha256.Size]byte
	// open says that what the next row follows is not known: the chain is checked from its middle.
	open bool
}

// NewChain checks a tenant's rows from a number on: 1, or less, for the whole chain. What the first row follows is taken from
// that row unless it is row 1.
func NewChain(tenant string, from int64) *Chain {
	if from <= 1 {
		return &Chain{tenant: tenant, hash: jig.AuditGenesis(tenant)}
	}
	return &Chain{tenant: tenant, n: from - 1, open: true}
}

// Head is the last row that was in order. Its hash is empty before the first row of a chain that is checked from its middle.
func (c *Chain) Head() Head {
	if c.open {
		return Head{N: c.n}
	}
	return Head{N: c.n, Hash: hex.EncodeToString(c.hash[:])}
}

// Next checks the row that comes next; nil when it is in order. After a row that is not, the chain stays where it was.
func (c *Chain) Next(row jig.AuditRow) *Broken {
	n := c.n + 1
	switch {
	case row.N > n:
		return broken(n, "is missing; row %d stands in its place", row.N)
	case row.N < n:
		return broken(n, "row %d stands in its place", row.N)
	}
	prev, ok := parseHash(row.Prev)
	if !ok {
		return broken(n, "what it follows, %q, is no SHA-256 in hex", shorten(row.Prev))
	}
	if !c.open && prev != c.hash {
		return broken(n, "it follows %x, and the row before it has the hash %x", prev, c.hash)
	}
	hash, ok := parseHash(row.Hash)
	if !ok {
		return broken(n, "its hash, %q, is no SHA-256 in hex", shorten(row.Hash))
	}
	if worked := jig.AuditHash(prev, n, row.Entry); worked != hash {
		return broken(n, "its entry does not hash to %x but to %x", hash, worked)
	}
	var entry jig.AuditEntry
	if err := json.Unmarshal([]byte(row.Entry), &entry); err != nil {
		return broken(n, "its entry is no audit entry: %v", err)
	}
	if entry.Tenant != c.tenant {
		return broken(n, "its entry is of the tenant %q, and the chain of %q", shorten(entry.Tenant), c.tenant)
	}
	c.n, c.hash, c.open = n, hash, false
	return nil
}

// End checks that the chain ends where its head says; nil when it does.
func (c *Chain) End(head Head) *Broken {
	at := c.Head()
	switch {
	case head.N > at.N:
		return broken(at.N+1, "is missing; the chain goes on to row %d", head.N)
	case head.N < at.N:
		return broken(head.N+1, "comes after the chain's end, row %d", head.N)
	case c.open || head.Hash == at.Hash:
		return nil
	}
	return broken(head.N, "its hash is %s, and the chain's head says %s", at.Hash, shorten(head.Hash))
}

// parseHash reads a SHA-256 as rows write it: 64 hex digits in lower case.
func parseHash(text string) (hash [sha256.Size]byte, ok bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(hash) || hex.EncodeToString(b) != text {
		return hash, false
	}
	return [sha256.Size]byte(b), true
}

// shorten keeps what a message can carry of a text that somebody else wrote.
func shorten(text string) string {
	const most = 80
	return jig.Cut(text, most)
}
