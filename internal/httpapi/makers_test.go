package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/client"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/tenancy"
)

// lists sets the people whom the tenant's document lists.
func (s *site) lists(people ...string) {
	s.tenants.change(func(all *tenancy.Settings) {
		all.People = nil
		for _, id := range people {
			all.People = append(all.People, jig.Principal{ID: id})
		}
	})
}

// whyNot is the reason for which the site refuses a credential; "" if it accepts it.
func (s *site) whyNot(key string) string {
	s.t.Helper()
	s.key = key
	answer, body := s.send(http.MethodGet, "/v1/me", "")
	if answer.StatusCode == http.StatusOK {
		return ""
	}
	return problem(s.t, answer, body).Reason
}

// A key that somebody made for a program does not act as a person whom the document lists later.
func TestAPIKeys_OfAProgramThatBecameAPerson(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.lists("ana")
	frank := s.makes(`{"principal":"frank","scopes":["read","manage"]}`)
	require.Equal(t, "ana", frank.Maker)
	s.key = frank.Text
	own := s.makes(`{"scopes":["read"]}`)
	require.Equal(t, "ana", own.Maker, "the maker stays")
	require.Equal(t, frank.ID, own.MadeWith.ID)
	require.Empty(t, s.whyNot(frank.Text))
	s.lists("ana", "frank")
	require.Equal(t, tenancy.EndedPerson, s.whyNot(frank.Text))
	require.Equal(t, tenancy.EndedPerson, s.whyNot(own.Text))
	s.lists("ana")
	require.Empty(t, s.whyNot(frank.Text))
}

// Keys end with the people who have them or made them, also if these were listed only later.
func TestAPIKeys_EndWithPeople(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ana := s.key
	s.lists("ana")
	program := s.makes(`{"principal":"ci","scopes":["read"]}`)
	require.Empty(t, s.whyNot(ana))
	s.lists("ben")
	require.Equal(t, tenancy.EndedRemoved, s.whyNot(ana))
	require.Equal(t, tenancy.EndedRemoved, s.whyNot(program.Text))
	s.lists("ana")
	require.Empty(t, s.whyNot(program.Text))
	s.tenants.change(func(all *tenancy.Settings) { all.Disabled = []string{"ana"} })
	require.Equal(t, tenancy.EndedDisabled, s.whyNot(program.Text))
}

// Sessions that start with a credential name its maker, and so does an embed token's.
func TestMaker_TravelsWithThePrincipal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	made := s.makes(`{"principal":"ci","scopes":["read","run"]}`)
	var who jig.Principal
	s.engine.start = func(o client.StartOptions) (client.Started, error) {
		who = o.Principal
		return client.Started{SessionID: "ses_1"}, nil
	}
	s.key = made.Text
	answer, body := s.send(http.MethodPost, "/v1/sessions", `{"agent":"a"}`)
	require.Equal(t, http.StatusCreated, answer.StatusCode, body)
	require.Equal(t, jig.Principal{ID: "ci", Claimed: true, Maker: "ana"}, who)
}

// A stream ends when somebody in the lineage of its key leaves.
func TestStream_EndsWithTheMakerOfItsKey(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.log.add(jig.EventSessionStarted)
	s.lists("ana")
	s.key = s.makes(`{"principal":"ci","scopes":["read"]}`).Text
	stream := s.follow()
	stream.until(t, "id: 1")
	s.lists("ben")
	stream.rest(t)
}

// A key that somebody takes over ends with them, and no longer with whoever made it.
func TestAPIKeys_AreTakenOver(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.lists("ana", "ben")
	ana := s.key
	program := s.makes(`{"principal":"ci","scopes":["read"]}`)
	under := s.makes(`{"principal":"deploy","scopes":["read","manage"]}`)
	own := s.makes(`{"scopes":["read"]}`)
	s.key = under.Text
	below := s.makes(`{"principal":"deploy","scopes":["read","manage"]}`)
	s.key = ana
	deciding := s.makes(`{"principal":"ci","scopes":["read"]}`)
	require.NoError(t, s.keys.change(deciding.ID, func(k *credential.Credential) { k.Scopes = []string{"decide"} }))
	gone := s.makes(`{"principal":"ci","scopes":["read"]}`)
	require.NoError(t, s.keys.change(gone.ID, func(k *credential.Credential) { k.RevokedAt = new(time.Now()) }))
	ben := s.keys.add("acme", "read", "manage")
	require.NoError(t, s.keys.change(idOf(t, ben), func(k *credential.Credential) { k.Principal = "ben" }))

	takes := func(with, id string) (int, string) {
		s.key = with
		answer, body := s.send(http.MethodPost, "/v1/api-keys/"+id+"/take-over", "")
		if answer.StatusCode == http.StatusOK {
			var taken struct{ Key string }
			require.NoError(t, json.Unmarshal([]byte(body), &taken))
			return answer.StatusCode, taken.Key
		}
		p := problem(t, answer, body)
		return answer.StatusCode, p.Detail + ": " + p.Hint
	}
	for _, row := range []struct {
		with, id string
		status   int
		says     string
	}{
		{program.Text, under.ID, http.StatusForbidden, "manage"},
		{ben, "abcdefghij234567", http.StatusNotFound, "GET /v1/api-keys lists them"},
		{ben, gone.ID, http.StatusConflict, "was revoked"},
		{ben, own.ID, http.StatusForbidden, "another person"},
		{ben, deciding.ID, http.StatusForbidden, "does not have the scope decide"},
		{below.Text, under.ID, http.StatusConflict, "made with this key"},
		{under.Text, under.ID, http.StatusConflict, "made with this key"},
	} {
		status, says := takes(row.with, row.id)
		require.Equal(t, row.status, status, "%s: %s", row.says, says)
		require.Contains(t, says, row.says)
	}
	s.lists("ben")
	require.Equal(t, tenancy.EndedRemoved, s.whyNot(program.Text))
	status, says := takes(ben, own.ID)
	require.Equal(t, http.StatusForbidden, status, "a key that acts as somebody who has left ends with them: %s", says)
	status, says = takes(ben, program.ID)
	require.Equal(t, http.StatusOK, status, says)
	require.Equal(t, "unauthenticated", s.whyNot(program.Text), "whoever made the key knows its old text")
	require.Empty(t, s.whyNot(says))
	taken := s.keys.list[hashOf(t, says)]
	require.Equal(t, []string{"ci", "ben", "ben", idOf(t, ben)}, []string{taken.Principal, taken.Maker, taken.CreatedBy, taken.MadeWith.ID})
	require.Equal(t, []string{"ben"}, taken.Persons)
	s.lists("ana")
	require.Equal(t, tenancy.EndedRemoved, s.whyNot(says), "it ends with its new maker")
}

// Whoever takes over a schedule needs what creating it needs, and the worker learns whether they manage the tenant.
func TestSchedule_TakenOverWithTheCallersCredential(t *testing.T) {
	t.Parallel()
	s, l := librarySite(t)
	s.lists("ana")
	for _, manages := range []bool{true, false} {
		s.key = s.keys.add("acme", "run")
		if manages {
			s.key = s.keys.add("acme", "run", "manage")
		}
		l.scheduled = "file.list"
		answer, body := s.send(http.MethodPost, "/v1/schedules/nightly/take-over", "")
		require.Equal(t, http.StatusOK, answer.StatusCode, body)
		require.Equal(t, "ana", l.taken.By.ID)
		require.Equal(t, manages, *l.taken.Manages)
		require.Equal(t, &protocol.Mandate{Credential: "api_key:" + idOf(t, s.key), Persons: []string{"ana"}}, l.taken.Mandate)
		l.scheduled = "catalog.put"
		answer, body = s.send(http.MethodPost, "/v1/schedules/nightly/take-over", "")
		require.Equal(t, http.StatusForbidden, problem(t, answer, body).Status)
	}
}

func idOf(t *testing.T, key string) string {
	t.Helper()
	id, _, ok := credential.KeyForm.Parse(key)
	require.True(t, ok)
	return id
}

func hashOf(t *testing.T, key string) string {
	t.Helper()
	_, hash, ok := credential.KeyForm.Parse(key)
	require.True(t, ok)
	return string(hash)
}
