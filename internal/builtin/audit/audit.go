// Package audittool contains the tool audit.verify, which lets an operator check a tenant's audit chain in the store. It must not know how
// rows are stored.
package audittool

import (
	"context"
	"fmt"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/tools"
)

// Options are the settings of the tools.
type Options struct {
	// Rows returns at most limit rows of a tenant's chain that follow row n, in order; required.
	Rows func(ctx context.Context, tenant string, after int64, limit int) ([]audit.Row, error)
	// Head returns the number and the hash (in hex) of the last row of the chain; for an empty chain, 0 and the hash that precedes the
	// first row. Required.
	Head func(ctx context.Context, tenant string) (n int64, hash string, err error)
}

// VerifyTool is the name of the tool that checks the chain.
const VerifyTool = "audit.verify"

// readRows is the number of rows read at a time.
const readRows = 500

// Input is the input of audit.verify.
type Input struct {
	Head string `json:"head,omitempty" jsonschema:"a hash that was noted before, which has to occur in the chain: 64 hex digits" pattern:"^[0-9a-f]{64}$"`
}

// Result is the output of audit.verify.
type Result struct {
	// OK reports whether the chain is intact.
	OK bool `json:"ok"`
	// Rows is the number of valid rows.
	Rows int64 `json:"rows"`
	// Head is the last valid row.
	Head audit.Head `json:"head"`
	// Broken is the first problem found; nil if the chain is intact.
	Broken *audit.Broken `json:"broken,omitempty"`
}

// Summary implements tools.Summarizer.
func (r Result) Summary() string {
	if r.Broken != nil {
		return "broken: " + r.Broken.String()
	}
	return fmt.Sprintf("%d rows in order, head %s", r.Rows, r.Head.Hash)
}

// Tools returns the tools of this package.
func Tools(o Options) []tools.Tool {
	return []tools.Tool{tools.New(jig.Tool{
		Name: VerifyTool,
		Description: "Checks the tenant's audit chain in the database: that no row was changed, taken out, added or moved. Returns how many rows are in order, " +
			"the chain's head to be noted elsewhere, and the first row that is broken, with what is wrong.",
		Permission: jig.PermissionRead, Risk: jig.RiskSafe, Execution: jig.ExecutionActivity, Idempotent: true, Timeout: 5 * time.Minute,
		Tags: []string{"operator"}, Labels: &jig.Labels{},
	}, func(ctx context.Context, inv jig.Invocation, in Input) (Result, error) {
		c := checker{Options: o, tenant: inv.Tenant, chain: audit.NewChain(inv.Tenant, 1), noted: in.Head}
		found, err := c.check(ctx)
		if err != nil {
			return Result{}, err
		}
		head := c.chain.Head()
		return Result{OK: found == nil, Rows: head.N, Head: head, Broken: found}, nil
	})}
}

// checker checks a chain once.
type checker struct {
	Options

	tenant string
	chain  *audit.Chain
	noted  string
	seen   bool
}

// check verifies the chain up to its current head. It leaves rows that are appended during the check to the next check.
func (c *checker) check(ctx context.Context) (*audit.Broken, error) {
	head, err := c.head(ctx)
	if err != nil {
		return nil, err
	}
	c.see(c.chain.Head().Hash)
	for c.chain.Head().N < head.N {
		at := c.chain.Head().N
		rows, err := c.Rows(ctx, c.tenant, at, int(min(readRows, head.N-at)))
		if err != nil {
			return nil, fmt.Errorf("read rows: %w", err)
		}
		if len(rows) == 0 {
			break
		}
		for _, row := range rows {
			if found := c.chain.Next(row); found != nil {
				return found, nil
			}
			c.see(row.Hash)
		}
	}
	if found := c.chain.End(head); found != nil {
		return found, nil
	}
	if found, err := c.beyond(ctx, head); found != nil || err != nil {
		return found, err
	}
	if c.noted != "" && !c.seen {
		return &audit.Broken{Problem: fmt.Sprintf("the noted hash %s is not in the chain: rows were removed, or the chain was rewritten", c.noted)}, nil
	}
	return nil, nil // nothing is wrong
}

func (c *checker) see(hash string) {
	c.seen = c.seen || hash == c.noted
}

func (c *checker) head(ctx context.Context) (audit.Head, error) {
	n, hash, err := c.Head(ctx, c.tenant)
	if err != nil {
		return audit.Head{}, fmt.Errorf("read the head: %w", err)
	}
	return audit.Head{N: n, Hash: hash}, nil
}

// beyond looks for rows after the head. A row and the head change in one transaction, so a head that is read after a row must cover that
// row.
func (c *checker) beyond(ctx context.Context, head audit.Head) (*audit.Broken, error) {
	rows, err := c.Rows(ctx, c.tenant, head.N, 1)
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil // nothing is wrong
	}
	now, err := c.head(ctx)
	if err != nil {
		return nil, err
	}
	if now.N >= rows[0].N {
		return nil, nil // nil: the row was appended during the check
	}
	return &audit.Broken{N: rows[0].N, Problem: fmt.Sprintf("comes after the chain's end, row %d", now.N)}, nil
}
