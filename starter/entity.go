package starter

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/toolname"
	"github.com/jig-run/jig/spec"
)

// entityReport is the JSON output of `status` for an entity.
type entityReport struct {
	jig.EntityStatus
	// Session is the session of the latest extraction, if it exists.
	Session *jig.SessionView `json:"session,omitempty"`
}

func isEntity(id string) bool { return strings.HasPrefix(id, jig.EntityPrefix) }

// followed returns the session to follow for an id and which of its events to show. For the id of an entity, it returns the session of the
// entity's latest extraction. A nil shown means all events.
func (a *app) followed(ctx context.Context, e engine, id string) (session string, shown func(jig.Event) bool, err error) {
	if !isEntity(id) {
		return id, nil, nil
	}
	status, err := e.Entity(ctx, a.flags.tenant, id)
	if err != nil {
		return "", nil, err
	}
	if status.SessionID == "" {
		return "", nil, jig.Errorf(jig.CodeNotFound, "no extraction has run for entity %s", id).WithField("entity").
			WithHint(a.fill(status))
	}
	a.say("%s %s: session %s", status.Type, entityTitle(status), status.SessionID)
	return status.SessionID, func(event jig.Event) bool { return concerns(event, status) }, nil
}

// fill returns a hint with the command that fills the entity's missing fields. It is empty if an extraction is running or nothing is
// missing.
func (a *app) fill(s jig.EntityStatus) string {
	begin := []string{"trigger", toolname.EntitiesExtract, "--input", "id=" + s.EntityID}
	switch s.Status {
	case jig.ExtractionNone:
		return "start one: " + a.command(begin...)
	case jig.ExtractionPartial, jig.ExtractionFailed:
		return "fill the missing fields: " + a.command(append(begin, "--input", "mode=retry")...)
	case jig.ExtractionRunning, jig.ExtractionCompleted:
	}
	return ""
}

// concerns reports whether an event belongs to an entity's extraction or to its session as a whole. The session may fill other entities
// too. It leaves out the start and completion of calls that the extraction's tasks make in turn; `jig watch SESSION` shows them.
func concerns(event jig.Event, s jig.EntityStatus) bool {
	var about taskData
	if json.Unmarshal(event.Data, &about) == nil && about.EntityID != "" {
		return about.EntityID == s.EntityID
	}
	if event.CallID == "" || ofTask(event.CallID, s.Call) {
		return true
	}
	return strings.HasPrefix(event.CallID, s.Call+"/") && event.Type != jig.EventToolStarted && event.Type != jig.EventToolCompleted
}

// ofTask reports whether a call is the extraction's own call or the call of one of its tasks. Calls that a task makes in turn do not count.
func ofTask(call, extraction string) bool {
	path, below := strings.CutPrefix(call, extraction+"/")
	return call == extraction || below && !strings.Contains(path, "/")
}

func entityTitle(s jig.EntityStatus) string {
	if s.Title == "" {
		return s.EntityID
	}
	return fmt.Sprintf("%q (%s)", s.Title, s.EntityID)
}

// entityStatus prints the state of an entity's tasks and the session of its latest extraction.
func (a *app) entityStatus(ctx context.Context, e engine, id string) error {
	status, err := e.Entity(ctx, a.flags.tenant, id)
	if err != nil {
		return err
	}
	report := entityReport{EntityStatus: status}
	if status.SessionID != "" {
		view, err := e.Status(ctx, a.flags.tenant, status.SessionID)
		switch {
		case err == nil:
			view = wholeLists(view)
			report.Session = &view
		case jig.CodeOf(err) != jig.CodeNotFound: // a session that is about to start has no row yet
			return err
		}
	}
	if a.json() {
		return a.printJSON(report)
	}
	if err := a.printEntity(status); err != nil {
		return err
	}
	if view := report.Session; view != nil {
		own := *view
		own.Calls = slices.DeleteFunc(slices.Clone(view.Calls), func(c jig.CallView) bool { return !ofTask(c.Call, status.Call) })
		a.line("")
		own.Output = filledValues(view.Output)
		if err := a.printStatus(ctx, e, own); err != nil {
			return err
		}
		if len(own.Output) > 0 {
			a.say("print the whole result: %s", a.command("result", own.SessionID, status.Call))
		}
	}
	if hint := a.fill(status); hint != "" && len(status.Tasks) > 0 {
		a.say("%s", hint)
	}
	return nil
}

// filledValues returns an excerpt of the values in the result of an extraction, without their provenance.
func filledValues(output json.RawMessage) json.RawMessage {
	var result struct {
		Values json.RawMessage `json:"values"`
	}
	if json.Unmarshal(output, &result) == nil && len(result.Values) > 0 {
		output = result.Values
	}
	shown, _ := jig.Excerpt(output, jig.ExcerptBytes)
	return shown
}

func (a *app) printEntity(s jig.EntityStatus) error {
	rows := [][]string{{"entity", a.out.bold(s.EntityID)}, {"type", s.Type}}
	if s.Title != "" {
		rows = append(rows, []string{"title", oneLine(s.Title, 100)})
	}
	rows = append(rows, []string{"extraction", a.statusWord(a.out, s.Status)})
	if len(s.Filled) > 0 {
		rows = append(rows, []string{"filled", strings.Join(s.Filled, ", ")})
	}
	a.table(rows)
	if len(s.Tasks) == 0 {
		return nil
	}
	a.line("")
	var tasks [][]string
	for _, id := range slices.Sorted(maps.Keys(s.Tasks)) {
		t, text := s.Tasks[id], ""
		if t.Error != nil {
			text = string(t.Error.Code) + ": " + t.Error.Message
		}
		tasks = append(tasks, []string{id, a.statusWord(a.out, t.Status), attemptsWord(t.Attempts), oneLine(text, 100)})
	}
	return a.printTable(tasks)
}

func attemptsWord(n int) string {
	if n < 2 {
		return ""
	}
	return plural(n, "attempt", "attempts")
}

// taskData is the data of task and entity events.
type taskData struct {
	EntityID string     `json:"entity_id"`
	Task     string     `json:"task"`
	Attempts int        `json:"attempts"`
	Because  string     `json:"because"`
	Fields   []string   `json:"fields"`
	Error    *jig.Error `json:"error"`
}

// taskSummary summarizes a task or entity event: which task, of which entity, and why. It returns "" for all other events.
func taskSummary(e jig.Event) string {
	var d taskData
	if json.Unmarshal(e.Data, &d) != nil || d.EntityID == "" {
		return ""
	}
	text := d.Task + " of " + d.EntityID
	switch e.Type { //nolint:exhaustive // the others do not concern tasks
	case jig.EventTaskStarted, jig.EventTaskCompleted, jig.EventTaskFailed:
		if word := attemptsWord(d.Attempts); word != "" {
			text += ", " + word
		}
		if d.Error != nil {
			text += ": " + string(d.Error.Code) + ": " + d.Error.Message
		}
	case jig.EventTaskSkipped:
		if d.Because == "condition" {
			return text + ": its condition does not hold"
		}
		return text + ": " + d.Because + " has no value"
	case jig.EventEntityUpdated:
		return strings.Join(d.Fields, ", ") + " of " + d.EntityID
	default:
		return ""
	}
	return text
}

// taskClock maps running tasks to their start times. It has only tasks whose start event was seen.
type taskClock map[string]time.Time

// took records the time of a start event. For an event that ends a task, it returns how long the task ran, or 0 if the start is not known.
func (c *taskClock) took(e jig.Event) time.Duration {
	var d taskData
	if !strings.HasPrefix(string(e.Type), "task.") || json.Unmarshal(e.Data, &d) != nil {
		return 0
	}
	key := d.EntityID + " " + d.Task
	if e.Type == jig.EventTaskStarted {
		if *c == nil {
			*c = taskClock{}
		}
		(*c)[key] = e.At
		return 0
	}
	began, ok := (*c)[key]
	delete(*c, key)
	if !ok {
		return 0
	}
	return e.At.Sub(began)
}

// sayEntity prints, for people, the link to the entity that a call created and the command that follows its extraction.
func (a *app) sayEntity(data json.RawMessage) {
	var made spec.ThinResult
	if json.Unmarshal(data, &made) != nil || made.EntityID == "" || made.SessionID == "" {
		return
	}
	if made.URL != "" {
		a.say("%s", oneLine(made.URL, 0))
	}
	a.say("follow its extraction with: %s", a.command("watch", made.EntityID))
}
