// Package audit checks chains of audit rows, and reads and writes their exports.
//
// The rows of a tenant form a chain: each contains the hash of the one before it, so that a changed, missing or added row is found. A
// [Chain] checks rows one after another. Whoever notes down a [Head] can later prove that the chain before it has not been replaced.
//
// An export is JSON lines: a header, then one [Row] per line. It can be checked without a server and without a database. The package must
// not depend on the source of the rows.
package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/jig-run/jig"
)

// Head is a position in a chain, usually its end: a row's number and its hash in hex. Row 0 is the position before the first row.
type Head struct {
	N    int64  `json:"n"`
	Hash string `json:"hash"`
}

// String returns the head in the form that people note down.
func (h Head) String() string { return fmt.Sprintf("row %d, %s", h.N, h.Hash) }

// check describes what is wrong with a head, phrased to follow its name. It returns "" if nothing is wrong.
func (h Head) check() string {
	if h.N < 0 {
		return fmt.Sprintf("counts %d rows", h.N)
	}
	if _, ok := parseHash(h.Hash); !ok {
		return fmt.Sprintf("has the hash %q, which is not 64 hex digits in lower case", shorten(h.Hash))
	}
	return ""
}

// Broken is the first problem found in a chain.
type Broken struct {
	// N is the number of the bad row; 0 when the problem is not in a single row.
	N int64 `json:"n"`
	// Problem says what is wrong, phrased to follow "row N: ".
	Problem string `json:"problem"`
}

// String names the row and its problem.
func (b Broken) String() string {
	if b.N == 0 {
		return b.Problem
	}
	return fmt.Sprintf("row %d: %s", b.N, b.Problem)
}

func broken(n int64, format string, args ...any) *Broken {
	return &Broken{N: n, Problem: fmt.Sprintf(format, args...)}
}

// Chain checks a tenant's rows one after another. It keeps only the last hash.
type Chain struct {
	tenant string
	n      int64
	hash   [sha256.Size]byte
	// open says that the previous row's hash is unknown, because the check starts in the middle of the chain.
	open bool
}

// NewChain returns a checker for a tenant's rows that starts with row from; 1 or less means the whole chain. When it starts with a
// later row, the hash that this row claims to follow is trusted.
func NewChain(tenant string, from int64) *Chain {
	if from <= 1 {
		return &Chain{tenant: tenant, hash: Genesis(tenant)}
	}
	return &Chain{tenant: tenant, n: from - 1, open: true}
}

// Head returns the last row that was in order. In a check that starts in the middle of a chain, its hash is empty before the first
// row.
func (c *Chain) Head() Head {
	if c.open {
		return Head{N: c.n}
	}
	return Head{N: c.n, Hash: hex.EncodeToString(c.hash[:])}
}

// Next checks the next row and returns nil when it is in order. A bad row does not advance the chain.
func (c *Chain) Next(row Row) *Broken {
	n := c.n + 1
	switch {
	case row.N > n:
		return broken(n, "is missing; row %d is in its place", row.N)
	case row.N < n:
		return broken(n, "row %d is in its place", row.N)
	}
	prev, ok := parseHash(row.Prev)
	if !ok {
		return broken(n, "the previous hash, %q, is not a SHA-256 in hex", shorten(row.Prev))
	}
	if !c.open && prev != c.hash {
		return broken(n, "it follows %x, and the row before it has the hash %x", prev, c.hash)
	}
	hash, ok := parseHash(row.Hash)
	if !ok {
		return broken(n, "its hash, %q, is not a SHA-256 in hex", shorten(row.Hash))
	}
	if worked := Hash(prev, n, row.Entry); worked != hash {
		return broken(n, "its entry does not hash to %x but to %x", hash, worked)
	}
	var entry Entry
	if err := json.Unmarshal([]byte(row.Entry), &entry); err != nil {
		return broken(n, "its entry is not an audit entry: %v", err)
	}
	if entry.Tenant != c.tenant {
		return broken(n, "its entry belongs to the tenant %q, and the chain to %q", shorten(entry.Tenant), c.tenant)
	}
	c.n, c.hash, c.open = n, hash, false
	return nil
}

// End checks that the chain ends with its stated head, and returns nil when it does.
func (c *Chain) End(head Head) *Broken {
	at := c.Head()
	switch {
	case head.N > at.N:
		return broken(at.N+1, "is missing; the chain continues to row %d", head.N)
	case head.N < at.N:
		return broken(head.N+1, "comes after the chain's end, row %d", head.N)
	case c.open || head.Hash == at.Hash:
		return nil
	}
	return broken(head.N, "its hash is %s, and the chain's head says %s", at.Hash, shorten(head.Hash))
}

// parseHash parses a SHA-256 as rows contain it: 64 lower-case hex digits.
func parseHash(text string) (hash [sha256.Size]byte, ok bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(hash) || hex.EncodeToString(b) != text {
		return hash, false
	}
	return [sha256.Size]byte(b), true
}

// shorten cuts a text of unknown origin to the length that a message can hold.
func shorten(text string) string {
	const most = 80
	return jig.Cut(text, most)
}
