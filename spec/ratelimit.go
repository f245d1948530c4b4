package spec

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/duration"
	"github.com/jig-run/jig/internal/expr"
)

// RateLimit is a parsed document of kind rate_limit: how often calls and sessions may begin, and how many calls may run at the same time.
type RateLimit struct {
	Kind        string     `json:"kind" spec:"required" jsonschema:"rate_limit."`
	Name        string     `json:"name" spec:"required,max=128,form=name" hint:"add e.g. name: apis" jsonschema:"The document's name: lower-case letters, digits, '.', '_' and '-'."`
	Description string     `json:"description,omitempty" spec:"max=4096" jsonschema:"What the limits are for."`
	Limits      []rateRule `json:"limits" spec:"required,max=100" hint:"add e.g. limits: [{name: all, rate: 10, per: 1s}]" jsonschema:"The limits. A call, or the start of a session, must fit into all that concern it, and waits until it does."`
}

// rateRule is a limit of a document.
type rateRule struct {
	Name        string     `json:"name" spec:"required,max=64,form=name" hint:"add e.g. name: per-host" jsonschema:"The limit's name, unique in the document. Status, events and errors name it."`
	Sessions    bool       `json:"sessions,omitempty" jsonschema:"true: count the sessions that people, programs and schedules start, and not calls."`
	Tools       []string   `json:"tools,omitempty" spec:"max=512,form=tool" jsonschema:"The tools whose calls count: names, category.* or * for all (the default)."`
	When        Expression `json:"when,omitempty" spec:"max=4096" jsonschema:"The calls that count (CEL over tool, input, agent, principal, tenant and session); default: all calls of the tools."`
	Key         Expression `json:"key,omitempty" spec:"max=4096" jsonschema:"Calls for which this gives the same value share the limit (CEL over the same variables), e.g. principal.id; default: all calls share it."`
	Rate        int        `json:"rate,omitempty" spec:"min=1,max=1000000" jsonschema:"How many calls may begin in the time per, spread evenly."`
	Per         Duration   `json:"per,omitempty" spec:"min=1s,max=31d" jsonschema:"The time for which rate counts, e.g. 1s, 1m or 1d."`
	Burst       int        `json:"burst,omitempty" spec:"min=1,max=1000000" jsonschema:"How many calls may begin at once after a quiet time; default 1."`
	Concurrency int        `json:"concurrency,omitempty" spec:"min=1,max=10000" jsonschema:"How many calls may run at the same time."`
	MaxWait     Duration   `json:"max_wait,omitempty" spec:"min=1s,max=31d" jsonschema:"How long a call may wait before it fails with RATE_LIMITED; default 1h."`
}

// defaultMaxWait is how long a call waits for a rate limit that does not say so.
const defaultMaxWait = time.Hour

// LoadRateLimit reads a document of kind rate_limit, in YAML or JSON, with its defaults. document is the file name for error messages. The error
// is a [Problems] with everything that is wrong.
func LoadRateLimit(document string, body []byte) (RateLimit, error) {
	return loadAs[RateLimit](KindRateLimit, document, body)
}

func (d *decoder) rateLimit(r RateLimit, _ source) RateLimit {
	if len(r.Limits) == 0 && len(d.problems) == 0 {
		d.at("limits", ProblemMissingKey, "add e.g. {name: all, rate: 10, per: 1s}", "the document has no limits")
	}
	for i := range r.Limits {
		d.checkRate(indexPath("limits", i), r.Limits[i].Sessions)
		r.Limits[i].setDefaults()
	}
	d.unique("limits", "name", len(r.Limits), func(i int) string { return r.Limits[i].Name })
	d.checkRateExpressions(r.Limits)
	return r
}

func (r *rateRule) setDefaults() {
	if len(r.Tools) == 0 {
		r.Tools = []string{"*"}
	}
	if r.Burst == 0 {
		r.Burst = 1
	}
	if r.MaxWait == 0 {
		r.MaxWait = Duration(defaultMaxWait)
	}
}

func (d *decoder) checkRate(path string, sessions bool) {
	rate, per := d.has(path+".rate"), d.has(path+".per")
	switch {
	case !rate && !per && (sessions || !d.has(path+".concurrency")):
		d.at(path, ProblemMissingKey, "add rate and per, or concurrency", "the limit bounds nothing")
	case rate && !per:
		d.at(path, ProblemMissingKey, "add e.g. per: 1m", "rate needs the time for which it counts")
	case per && !rate:
		d.at(path, ProblemMissingKey, "add e.g. rate: 30", "per needs the number of calls")
	}
	if sessions {
		for _, key := range []string{"tools", "concurrency", "max_wait"} {
			if d.has(path + "." + key) {
				d.at(path+"."+key, ProblemBadShape, "remove it, or remove sessions: true", "only a limit of calls has %s", jig.Known(key))
			}
		}
	}
	if d.has(path+".burst") && !rate {
		d.at(path+".burst", ProblemBadShape, "remove it, or add rate and per", "only a limit with a rate has a burst")
	}
}

// RateLimitShapes returns the JSON Schemas of the variables that rate limits can read, by name.
func RateLimitShapes() expr.Shapes {
	policy := PolicyShapes()
	return expr.Shapes{
		"input": policy["input"],
		"agent": policy["agent"],
		"principal": []byte(`{"type":"object","additionalProperties":false,"properties":{"id":{"type":"string"},` +
			`"groups":{"type":"array","items":{"type":"string"}}}}`),
		"session": []byte(`{"type":"object","additionalProperties":false,"properties":{"id":{"type":"string"},` +
			`"root_agent":{"type":"string"},"parent_agent":{"type":"string"},"depth":{"type":"integer"},"source":{"type":"string"}}}`),
	}
}

func (d *decoder) checkRateExpressions(limits []rateRule) {
	env, err := expr.RateLimitUse().Env()
	if err != nil {
		d.at("limits", ProblemBadCEL, "", "expressions cannot be checked: %v", err)
		return
	}
	c, shapes := compiler{decoder: d, env: env}, RateLimitShapes()
	check := func(path string, source Expression, want expr.Type) {
		if source == "" {
			return
		}
		if err := env.Check(string(source), want, shapes); err != nil {
			c.report(path, err)
		}
	}
	for i, limit := range limits {
		check(indexPath("limits", i)+".when", limit.When, expr.Bool)
		check(indexPath("limits", i)+".key", limit.Key, expr.Any)
	}
}

// explainRateLimit says which calls and sessions the limits of a document concern, and what the limits allow.
func explainRateLimit(doc Document, _ []Document, _ []jig.Tool) (text, diagram string) {
	r := doc.RateLimit()
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("rate limit %s", r.Name)
	if r.Description != "" {
		line("%s", r.Description)
	}
	for _, l := range r.Limits {
		which := "calls of " + strings.Join(l.Tools, ", ")
		switch {
		case l.Sessions:
			which = "sessions"
		case slices.Contains(l.Tools, "*"):
			which = "all calls"
		}
		if l.When != "" {
			which += " for which " + string(l.When)
		}
		if l.Key != "" {
			which += ", counted by " + string(l.Key)
		}
		line("%s: %s", l.Name, which)
		if l.Rate > 0 {
			at := "one every " + duration.Format(time.Duration(l.Per)/time.Duration(l.Rate))
			if l.Burst > 1 {
				at += fmt.Sprintf(", up to %d at once after a quiet time", l.Burst)
			}
			line("  %d may begin per %s: %s", l.Rate, duration.Format(time.Duration(l.Per)), at)
		}
		if l.Concurrency > 0 {
			line("  %d may run at the same time", l.Concurrency)
		}
		if l.Sessions {
			line("  others wait, as long as their deadlines allow")
		} else {
			line("  others wait, at most %s, and then fail with RATE_LIMITED", duration.Format(time.Duration(l.MaxWait)))
		}
	}
	return out.String(), ""
}
