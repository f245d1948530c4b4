package activities

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan"
)

// inputPath is the path under which the input of an extraction is stored. No task has such an id.
const inputPath = "$input"

// beginExtraction determines which entities the call fills. If the call must not or cannot fill them, it ends with an error, and ended is
// set.
func (c *composition) beginExtraction(ctx context.Context, fence int) (ended *Ran, err error) {
	begun, err := c.Extractor.Begin(ctx, c.root.Tool, c.asCall(), c.root.Input)
	if err == nil {
		c.begun = &begun
		return nil, nil // nil means that the call has not ended
	}
	if ctx.Err() != nil || jig.CodeOf(err).Retryable() {
		return nil, err
	}
	refused := *jig.AsError(err)
	refused.NotExecuted = true // nothing has begun
	ran, err := c.completeChild(ctx, c.root, fence, jig.Failure(&refused), approval.Reads{})
	return &ran, err
}

// asCall returns the invocation whose permissions apply to what the composition reads.
func (c *composition) asCall() jig.Invocation {
	return jig.Invocation{
		Tenant: c.root.Tenant, Principal: c.session.Principal, SessionID: c.root.SessionID, CallID: c.root.ID,
		Agent: c.session.Agent.Name, Depth: c.session.Depth,
	}
}

// prepare reads what the moves of an extraction depend on: the entity type with which it began, and its input, which is stored with the
// first move and never changes.
func (c *composition) prepare(ctx context.Context) (ended *Ran, err error) {
	if !c.fills || c.frame.Done {
		return nil, nil // nil means that the call has not ended
	}
	if c.frame.Revision > 0 {
		kept, err := c.Store.FrameValues(ctx, c.root.Tenant, c.root.SessionID, c.root.ID, []string{inputPath})
		if err != nil {
			return nil, err
		}
		c.at.Input = kept[inputPath]
	} else {
		if c.begun == nil {
			if ended, err = c.beginExtraction(ctx, c.frame.Fence); ended != nil || err != nil {
				return ended, err
			}
		}
		c.at.Input = c.begun.Input
	}
	key := contractKey{c.root.Tenant, DocumentEntityType + "/" + c.frame.Name, c.frame.Version}
	found, err := c.contracts.Get(key, func(contract, bool) (contract, error) {
		body, err := c.Store.DocumentAt(ctx, c.root.Tenant, DocumentEntityType, c.frame.Name, c.frame.Version)
		return contract{body: body}, err
	})
	if err != nil {
		return nil, err
	}
	c.spec.body = found.body
	return nil, nil // nil means that the call has not ended
}

// toEntity adds to a move what only extractions store: the change of the entity and, with the first move, the input.
func (c *composition) toEntity(m *plan.FrameMove, change *entity.Change) {
	if m.Revision == 0 && len(c.at.Input) > 0 {
		m.Values = maps.Clone(m.Values)
		if m.Values == nil {
			m.Values = map[string]json.RawMessage{}
		}
		m.Values[inputPath] = c.at.Input
	}
	m.Entity = change
}
