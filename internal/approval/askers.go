package approval

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jig-run/jig"
)

// askers returns those on whose word a call rests, with the principal on whose behalf it is made.
func askers(p jig.Pending) []jig.Asker {
	started := func(a jig.Asker) bool { return a.Principal == p.RequestedBy && a.By == jig.AskedStarted }
	if p.RequestedBy == "" || slices.ContainsFunc(p.Askers, started) {
		return p.Askers
	}
	return append([]jig.Asker{{Principal: p.RequestedBy, By: jig.AskedStarted}}, p.Askers...)
}

// excluded reports whether an asker may not decide where the terms exclude askers. An author whose name nobody checked excludes nobody,
// because otherwise anybody could keep somebody from deciding. Reviewers are no askers; see [Consent.needsAnother].
func excluded(a jig.Asker) bool {
	return a.By != jig.AskedEdited && a.By != jig.AskedReview && (!a.Claimed || a.By == jig.AskedStarted)
}

// persons says which principals are one person for a call: somebody who acts with a credential that somebody else made, and its maker. It maps
// principals to another principal of the same person.
type persons map[string]string

// of returns the principal that represents a person.
func (p persons) of(id string) string {
	for p[id] != "" {
		id = p[id]
	}
	return id
}

// join makes a principal and the maker of its credential one person. The installation's operator is nobody's maker.
func (p persons) join(id, maker string) {
	if maker == "" || maker == jig.MakerOperator {
		return
	}
	if a, b := p.of(id), p.of(maker); a != b {
		p[a] = b
	}
}

// persons returns who is one person with whom, by what everybody has done so far who has to do with the call.
func (c Consent) persons(more ...jig.Principal) persons {
	same := persons{}
	for _, a := range c.Askers {
		same.join(a.Principal, a.Maker)
	}
	for _, v := range c.Votes {
		same.join(v.By, v.Maker)
	}
	for _, d := range c.Delegations {
		same.join(d.From, d.Maker)
	}
	for _, p := range more {
		same.join(p.ID, p.Maker)
	}
	return same
}

// asked returns why a person may not decide because the call rests on their word, or "". same says who is one person with whom.
func (c Consent) asked(id string, same persons) string {
	if !c.Terms.NotRequester {
		return ""
	}
	for _, a := range c.Askers {
		switch {
		case !excluded(a) || same.of(a.Principal) != same.of(id):
		case a.Principal == id:
			return fmt.Sprintf("%s asked for this call and may not decide it", id)
		default:
			return fmt.Sprintf("%s may not decide this call: %s asked for it, and one of the two made the other's credential", id, a.Principal)
		}
	}
	return ""
}

// needsAnother returns why the approval of one person does not suffice where the terms exclude askers, or "": the call has words of theirs, because they
// changed its input or reviewed earlier calls. same says who is one person with whom.
func (c Consent) needsAnother(person string, same persons) string {
	for _, a := range c.Askers {
		switch {
		case !c.Terms.NotRequester || same.of(a.Principal) != person:
		case a.By == jig.AskedEdited:
			return a.Principal + " changed the input, so somebody else must approve it"
		case a.By == jig.AskedReview && !a.Claimed:
			return a.Principal + " changed an earlier call or said why it was denied, so somebody else must approve this one"
		}
	}
	return ""
}

// WithEditor returns askers with a person who changed the input, instead of those who changed it before; with nobody if editor is the zero
// value.
func WithEditor(list []jig.Asker, editor jig.Principal) []jig.Asker {
	list = slices.DeleteFunc(slices.Clone(list), func(a jig.Asker) bool { return a.By == jig.AskedEdited })
	if editor.ID == "" {
		return list
	}
	return append(list, *said(editor, jig.AskedEdited))
}

// said returns an asker for somebody who puts words into a session.
func said(who jig.Principal, by string) *jig.Asker {
	return &jig.Asker{Principal: who.ID, Claimed: who.Claimed, Maker: who.Maker, By: by}
}

// Requesters says for people on whose word a call rests, e.g. "requested by ci; words by ana (message); changed by ben". It is empty if nobody is
// known.
func Requesters(p jig.Pending) string {
	var asked, words, changed []string
	for _, a := range askers(p) {
		name := a.Principal
		switch a.By {
		case jig.AskedStarted:
			asked = appendNew(asked, name)
			continue
		case jig.AskedEdited:
			changed = appendNew(changed, name)
			continue
		}
		how := a.By
		if a.Claimed {
			how += ", claimed"
		}
		words = appendNew(words, name+" ("+how+")")
	}
	var parts []string
	for _, part := range []struct {
		says string
		who  []string
	}{{"requested by ", asked}, {"words by ", words}, {"changed by ", changed}} {
		if len(part.who) > 0 {
			parts = append(parts, part.says+strings.Join(part.who, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// Excluded names those who may not decide about a call because they asked for it, e.g. "ci or ana". It is empty if the terms exclude nobody.
func Excluded(p jig.Pending) string {
	if !termsOf(p).NotRequester {
		return ""
	}
	var names []string
	for _, a := range askers(p) {
		if excluded(a) {
			names = appendNew(names, a.Principal)
		}
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

func appendNew(list []string, one string) []string {
	if slices.Contains(list, one) {
		return list
	}
	return append(list, one)
}
