package httpapi_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/audit"
	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/protocol"
)

// chained is the record of the tenant acme, in pages of two rows. It grows by a row with every page.
type chained struct {
	httpapi.Records

	rows []audit.Row
	// lost is the number of a row that cannot be read; 0 for none.
	lost int64
	// begun gets a value when a request asks for the second page of a whole export, which never comes; nil if it comes.
	begun chan struct{}
}

func (c *chained) grow() {
	prev := audit.Genesis("acme")
	n := int64(len(c.rows) + 1)
	if n > 1 {
		last, _ := hex.DecodeString(c.rows[n-2].Hash) //nolint:errcheck // made below
		copy(prev[:], last)
	}
	entry := `{"tenant":"acme","kind":"paused","note":"` + strconv.FormatInt(n, 10) + `"}`
	hash := audit.Hash(prev, n, entry)
	c.rows = append(c.rows, audit.Row{N: n, Prev: hex.EncodeToString(prev[:]), Hash: hex.EncodeToString(hash[:]), Entry: entry})
}

func (c *chained) AuditOnce(ctx context.Context, r protocol.AuditRequest) (protocol.AuditPage, error) {
	if c.begun != nil && r.After == 2 {
		c.begun <- struct{}{}
		<-ctx.Done()
		return protocol.AuditPage{}, ctx.Err()
	}
	c.grow()
	last := c.rows[len(c.rows)-1]
	page := protocol.AuditPage{HeadN: last.N, HeadHash: last.Hash}
	for _, row := range c.rows {
		if row.N > r.After && len(page.Rows) < 2 && row.N != c.lost {
			page.Rows = append(page.Rows, row)
		}
	}
	page.More = len(page.Rows) == 2
	return page, nil
}

func auditSite(t *testing.T, rows int) (*site, *chained) {
	t.Helper()
	c := &chained{}
	for range rows {
		c.grow()
	}
	return newSiteWith(t, func(o *httpapi.Options) { o.Engine.Records = c }), c
}

func TestAudit_ExportsEndWhereTheyBegan(t *testing.T) {
	t.Parallel()
	s, c := auditSite(t, 6)
	answer, body := s.send(http.MethodGet, "/v1/audit/export", "")
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	require.Equal(t, "application/x-ndjson", answer.Header.Get("Content-Type"))
	report, err := audit.Verify(strings.NewReader(body), audit.Options{})
	require.NoError(t, err)
	require.True(t, report.OK, "%+v", report)
	require.Equal(t, int64(7), report.Rows)
	require.Greater(t, len(c.rows), 7, "the record grew meanwhile")

	answer, body = s.send(http.MethodGet, "/v1/audit/export?from=5", "")
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	report, err = audit.Verify(strings.NewReader(body), audit.Options{})
	require.NoError(t, err)
	require.True(t, report.OK)
	require.Equal(t, int64(5), report.From)
	answer, body = s.send(http.MethodGet, "/v1/audit/export?from=900", "")
	require.Equal(t, "from", problem(t, answer, body).Field)
	_, body = s.send(http.MethodGet, "/v1/audit/head", "")
	last := c.rows[len(c.rows)-1]
	require.JSONEq(t, `{"n":`+strconv.FormatInt(last.N, 10)+`,"hash":"`+last.Hash+`"}`, body)
}

// Few requests may read the whole audit of a tenant at the same time, because each reads and hashes all rows.
func TestAudit_FewReadAllOfIt(t *testing.T) {
	t.Parallel()
	s, c := auditSite(t, 6)
	c.begun = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for i := range 4 {
		path := []string{"/v1/audit/export", "/v1/audit/verify"}[i%2]
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, http.NoBody)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+s.key)
		clients.Go(func() {
			if answer, err := http.DefaultClient.Do(request); err == nil {
				_ = answer.Body.Close()
			}
		})
		<-c.begun
	}
	for _, path := range []string{"/v1/audit/export?from=5", "/v1/audit/verify?from=5"} {
		answer, body := s.send(http.MethodGet, path, "")
		require.Equal(t, []string{"RATE_LIMITED", "rate"}, []string{problem(t, answer, body).Code, problem(t, answer, body).Reason})
	}
	answer, body := s.send(http.MethodGet, "/v1/audit/head", "")
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
	cancel()
	clients.Wait()
	for status := http.StatusTooManyRequests; status == http.StatusTooManyRequests; status = answer.StatusCode { // until the server has noticed
		answer, body = s.send(http.MethodGet, "/v1/audit/export?from=5", "")
	}
	require.Equal(t, http.StatusOK, answer.StatusCode, body)
}

// Whoever reads an export notices that it was cut off.
func TestAudit_AnExportThatFailsIsCutOff(t *testing.T) {
	t.Parallel()
	s, c := auditSite(t, 3)
	c.rows, c.lost = c.rows[:3], 4
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/audit/export?from=4", http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+s.key)
	answer, err := http.DefaultClient.Do(request)
	if err == nil {
		_, err = answer.Body.Read(make([]byte, 1<<16))
		for err == nil {
			_, err = answer.Body.Read(make([]byte, 1<<16))
		}
		require.NoError(t, answer.Body.Close())
	}
	require.ErrorContains(t, err, "EOF")
	require.NotEqual(t, "EOF", err.Error())
}

func TestAudit_IsVerified(t *testing.T) {
	t.Parallel()
	s, c := auditSite(t, 6)
	verified := func(query string) (report audit.Report) {
		answer, body := s.send(http.MethodGet, "/v1/audit/verify"+query, "")
		require.Equal(t, http.StatusOK, answer.StatusCode, body)
		require.NoError(t, json.Unmarshal([]byte(body), &report))
		return report
	}
	require.True(t, verified("").OK)
	require.True(t, verified("?head="+c.rows[2].Hash).OK)
	require.False(t, verified("?head="+strings.Repeat("a", 64)).OK)
	require.Equal(t, int64(3), verified("?from=3").From)
	answer, body := s.send(http.MethodGet, "/v1/audit/verify?head=x", "")
	require.Equal(t, "head", problem(t, answer, body).Field)
	c.rows[3].Entry = `{"tenant":"acme","kind":"resumed"}`
	broken := verified("")
	require.False(t, broken.OK)
	require.Equal(t, int64(4), broken.Broken.N)
}
