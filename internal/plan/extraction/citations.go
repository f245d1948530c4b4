package extraction

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
)

// ReasonCitations is the reason of an error whose violations point to claims.
const ReasonCitations = "citations_rejected"

// maxClaims is the maximum number of claims in one list.
const maxClaims = 10_000

// claims returns the value of the task whose claims t checks.
func (r *run) claims(ctx context.Context, t *task) (json.RawMessage, error) {
	if err := r.loadTasks(ctx, []int{t.claims}); err != nil {
		return nil, err
	}
	return r.rawValue(t.claims)
}

// cited returns the value of a citations task, the list of claims, provided that all claims hold.
func (r *run) cited(ctx context.Context, t *task, raw json.RawMessage) (json.RawMessage, *jig.Error, error) {
	list, claims, problem := readClaims(raw)
	if problem != nil {
		return nil, problem, nil
	}
	connected, err := r.known(ctx)
	if err != nil {
		return nil, nil, err
	}
	own := map[string]string{r.given.EntityID: "is the entity that is being filled: a claim cannot be supported by the entity that contains it"}
	for _, id := range []string{t.Claims, t.ID} {
		if _, is := connected[id]; !is {
			own[id] = "is the task that makes the claim: a claim cannot support itself"
		}
	}
	if t.among != nil {
		may, problem, err := r.mayCite(ctx, t)
		if problem != nil || err != nil {
			return nil, problem, err
		}
		for _, id := range citedIDs(list) {
			if _, is := connected[id]; is && own[id] == "" && !may[id] {
				own[id] = "is connected to the entity, but not one of those that these claims may cite"
			}
		}
	}
	if problem := CheckClaims(claims, connected, own); problem != nil {
		return nil, problem, nil
	}
	return list, nil, nil
}

// mayCite returns the ids that the claims of a task may cite, from its among expression.
func (r *run) mayCite(ctx context.Context, t *task) (map[string]bool, *jig.Error, error) {
	v, problem, err := evaluate(ctx, r, t, "among", t.reads.among, r.At.Now.UTC(), nil, t.among.Eval)
	if problem != nil || err != nil {
		return nil, problem, err
	}
	ids, problem := idsOf(v, maxClaims)
	if problem != nil {
		return nil, r.plan.Located(t.at("among"), problem), nil
	}
	may := make(map[string]bool, len(ids))
	for _, id := range ids {
		may[id] = true
	}
	return may, nil, nil
}

// readClaims reads a list of claims, or an object with such a list as claims.
func readClaims(raw json.RawMessage) (list json.RawMessage, claims []entity.TextClaim, problem *jig.Error) {
	list = raw
	var object struct {
		Claims json.RawMessage `json:"claims"`
	}
	if json.Unmarshal(raw, &object) == nil && len(object.Claims) > 0 {
		list = object.Claims
	}
	if err := json.Unmarshal(list, &claims); err != nil || claims == nil {
		return nil, nil, jig.Errorf(jig.CodeInvalidOutput, "these are not claims").
			WithHint("a list of {text, source_entity_ids, quote?}, or an object that has one as claims")
	}
	if len(claims) > maxClaims {
		return nil, nil, jig.Errorf(jig.CodeInvalidOutput, "there are %d claims, at most %d are allowed", len(claims), maxClaims)
	}
	return list, claims, nil
}

// citedIDs returns the ids that claims name, without duplicates.
func citedIDs(raw json.RawMessage) []string {
	_, claims, problem := readClaims(raw)
	if problem != nil {
		return nil
	}
	var out []string
	seen := map[string]bool{}
	for _, c := range claims {
		for _, id := range c.SourceEntityIDs {
			if !seen[id] {
				seen[id] = true
				out = append(out, id)
			}
		}
	}
	return out
}

// CheckClaims rejects claims that have no text, have no source, name a source outside connected, or quote a text that their sources do not
// contain. own maps ids that no claim may name to the reason. The error is INVALID_OUTPUT with the reason [ReasonCitations]. It lists all
// violations, with pointers relative to the list of claims. Quotes are compared word for word, ignoring white space.
func CheckClaims(claims []entity.TextClaim, connected map[string]Source, own map[string]string) *jig.Error {
	c := claimChecker{connected: connected, own: own, texts: map[string]string{}}
	wrong := 0
	for i, claim := range claims {
		before := len(c.found)
		c.check(fmt.Sprintf("/%d", i), claim)
		if len(c.found) > before {
			wrong++
		}
	}
	if wrong == 0 {
		return nil
	}
	e := jig.Errorf(jig.CodeInvalidOutput, "%d of %d claims do not hold; claim %s: %s", wrong, len(claims), c.found[0].Pointer, c.found[0].Message).
		WithReason(ReasonCitations).
		WithHint("each claim must name at least one connected source and quote it word for word")
	e.Violations = c.found
	return e
}

// claimChecker collects what is wrong with claims.
type claimChecker struct {
	connected map[string]Source
	own       map[string]string
	// texts caches the texts of sources in the form in which they are compared.
	texts map[string]string
	found []jig.Violation
}

func (c *claimChecker) reject(pointer, format string, args ...any) {
	c.found = append(c.found, jig.Violation{Pointer: pointer, Message: fmt.Sprintf(format, args...)})
}

func (c *claimChecker) check(at string, claim entity.TextClaim) {
	if strings.TrimSpace(claim.Text) == "" {
		c.reject(at+"/text", "the claim says nothing")
	}
	if len(claim.SourceEntityIDs) == 0 {
		c.reject(at+"/source_entity_ids", "the claim has no source")
	}
	var texts []string
	for i, id := range claim.SourceEntityIDs {
		pointer := fmt.Sprintf("%s/source_entity_ids/%d", at, i)
		source, known := c.connected[id]
		switch why, is := c.own[id]; {
		case is:
			c.reject(pointer, "%q %s", jig.Cut(id, 200), why)
		case !known:
			c.reject(pointer, "%q is not connected to the entity", jig.Cut(id, 200))
		case source.Text != nil:
			texts = append(texts, id)
		}
	}
	c.quoted(at+"/quote", claim, texts)
}

// quoted looks for a claim's quote in the texts of its sources.
func (c *claimChecker) quoted(at string, claim entity.TextClaim, texts []string) {
	if claim.Quote == "" {
		return
	}
	quote := spaced(claim.Quote)
	switch {
	case quote == "":
		c.reject(at, "the quote is blank")
		return
	case len(texts) == 0:
		c.reject(at, "none of the claim's sources is a text that could be quoted: %q", jig.Cut(quote, 200))
		return
	}
	for _, id := range texts {
		text, ok := c.texts[id]
		if !ok {
			text = spaced(*c.connected[id].Text)
			c.texts[id] = text
		}
		if strings.Contains(text, quote) {
			return
		}
	}
	c.reject(at, "none of the claim's sources contains %q", jig.Cut(quote, 200))
}

// spaced returns the text with single spaces between its words.
func spaced(text string) string { return strings.Join(strings.Fields(text), " ") }
