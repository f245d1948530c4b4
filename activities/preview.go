package activities

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/confine"
	"github.com/jig-run/jig/internal/preview"
)

const (
	// previewTime limits how long computing a preview may take. It fits into the grace period of an attempt, which computes it again.
	previewTime = 5 * time.Second
	// maxDifferent is how often a preview may turn out to be different before the call runs. With the last time, the call ends.
	maxDifferent = 3
)

// previews computes the preview of one call, once for each input.
type previews struct {
	*Activities
	session jig.Session
	tool    jig.Tool
	// before is the call as it was admitted before; the zero Call if it is admitted for the first time.
	before jig.Call
	// known is the preview for input; nil if none was computed.
	input []byte
	known *jig.Preview
}

// of returns the preview of the call. If there is none, the preview says why. An error means that the preview could not be tried.
func (p *previews) of(ctx context.Context, call jig.Call) (*jig.Preview, error) {
	if p.known != nil && bytes.Equal(p.input, call.Input) {
		return p.known, nil
	}
	found, ok, err := p.find(ctx, call.Tenant, call.Tool, p.tool.Version)
	if err != nil {
		return nil, jig.Errorf(jig.CodeUnavailable, "this worker cannot read the tool %s: %w", call.Tool, err)
	}
	if !ok || found.preview == nil {
		return nil, jig.Errorf(jig.CodeUnavailable, "this worker cannot compute previews of %s", call.Tool)
	}
	shown := p.compute(ctx, found, call)
	if err := ctx.Err(); err != nil {
		return nil, jig.Errorf(jig.CodeCanceled, "the preview of call %s was canceled: %w", call.ID, err)
	}
	p.input, p.known = slices.Clone(call.Input), &shown
	return p.known, nil
}

// compute runs the tool's preview with the caller's rights. The preview cannot write to the store and, if the tool sends data away, cannot
// connect to anything through jig. A preview that does not return in time is left behind.
func (p *previews) compute(ctx context.Context, found contract, call jig.Call) jig.Preview {
	ctx, cancel := context.WithTimeout(confine.ReadOnly(ctx), previewTime)
	defer cancel()
	if found.tool.Sends() {
		ctx = confine.Offline(ctx)
	}
	call.Preview, call.IdempotencyKey = nil, ""
	inv := p.invocation(p.session, call, 0, nil)
	done := make(chan jig.Preview, 1)
	go func() {
		defer func() {
			if cause := recover(); cause != nil {
				p.logger.ErrorContext(ctx, "a preview panicked", slog.String("tool", call.Tool),
					slog.String("panic", fmt.Sprint(cause)), slog.String("stack", string(debug.Stack())))
				done <- preview.Missing("it failed with an internal error; see the worker's log")
			}
		}()
		var raw jig.Preview
		err := retryWhileUnavailable(ctx, func() (err error) {
			raw, err = found.preview(ctx, slices.Clone(call.Input), inv, p.reader(call))
			return err
		})
		if err == nil {
			raw, err = preview.Clean(raw)
		}
		if err != nil {
			raw = preview.Missing(jig.AsError(err).Message)
		}
		done <- raw
	}()
	select {
	case shown := <-done:
		return shown
	case <-ctx.Done():
		return preview.Missing(fmt.Sprintf("it was not finished after %s", previewTime))
	}
}

// show sets the preview of a call that asks, in the call and in the approval to open. If previews of the same call have been different too
// often, the call ends instead.
func (p *previews) show(ctx context.Context, call *jig.Call, asked *jig.Pending) error {
	shown, err := p.of(ctx, *call)
	if err != nil {
		return err
	}
	call.Preview = shown
	if p.before.Preview != nil && p.before.Preview.Missing == notYet {
		asked.Reasons = append(slices.Clone(asked.Reasons), "its arguments were changed, and nobody has seen yet what it would change now")
	}
	if p.different(*call) {
		if call.Previews++; call.Previews >= maxDifferent {
			refuse(call, unsteady(call.Tool))
			return nil
		}
		asked.Reasons = append(slices.Clone(asked.Reasons),
			fmt.Sprintf("what it would change is not what was approved before; after %d more such changes the call ends", maxDifferent-call.Previews))
	}
	if call.Digest, err = digest(p.store.Installation(), *call); err != nil {
		return err
	}
	asked.Preview, asked.Digest = shown, call.Digest
	return nil
}

// different reports whether people were shown another preview of the same call before.
func (p *previews) different(call jig.Call) bool {
	before := p.before.Preview
	if before == nil || before.Missing == notYet || !bytes.Equal(p.before.Input, call.Input) {
		return false
	}
	return !reflect.DeepEqual(*before, *call.Preview)
}

// unsteady returns the error of a call whose previews were different too often.
func unsteady(tool string) *jig.Error {
	e := jig.Errorf(jig.CodeConflict, "nothing was done: what %s would change was different %d times from what people had approved", tool, maxDifferent).
		WithHint("find out what else changes it, and call again when that is over")
	e.NotExecuted = true
	return e
}

// notYet is why a call has no preview whose arguments a person has just changed.
const notYet = "the arguments were changed after it was computed; jig computes it again before the call runs, and asks again"

// previewOfEdited returns the preview of a call whose arguments a person has just changed: there is none yet. Because every other preview
// differs from it, the call asks again before it runs.
func previewOfEdited(tool jig.Tool) *jig.Preview {
	if !tool.Previews {
		return nil
	}
	return new(jig.Preview{Missing: notYet})
}

// again returns the call as it would run now. If people were shown a preview, it is computed again. A call that an attempt has begun keeps
// its preview, because the attempt may have changed what the preview is computed from.
func (p *previews) again(ctx context.Context, call jig.Call) (jig.Call, error) {
	if call.Preview == nil || call.Status != jig.CallReserved || call.Version != p.tool.Version {
		return call, nil
	}
	var err error
	call.Preview, err = p.of(ctx, call)
	return call, err
}

// unasked reports whether nobody was asked about a call that asks, because there was no preview yet.
func (p *previews) unasked(ctx context.Context, call jig.Call) (bool, error) {
	if !p.tool.Previews || call.Preview != nil || call.Verdict != jig.VerdictAsk || call.Status != jig.CallReserved {
		return false, nil
	}
	by, _, err := p.store.Approved(ctx, call.Tenant, call.SessionID, call.ID)
	return len(by) == 0, err
}

// precondition returns the precondition of the preview that people approved.
func precondition(call jig.Call) string {
	if call.Preview == nil {
		return ""
	}
	return call.Preview.Precondition
}
