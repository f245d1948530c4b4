package server

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/identity/credential"
	"github.com/jig-run/jig/internal/selfcheck"
	"github.com/jig-run/jig/internal/store/storetest"
)

var (
	fuzzRequests = flag.Int("api.requests", 40, "how many broken requests of each operation TestOperations makes")
	fuzzSeed     = flag.Uint64("api.seed", 1, "the seed of the broken requests")
)

const (
	// canary is part of every value that a broken request has. No error may repeat it.
	canary = "Canary7f3a91"
	// strange is the name of a member or a parameter that no operation has. Errors say where the mistake is, so they repeat names.
	strange = "strange_name"
	// maxGrowth is how many bytes the process may keep for all requests together.
	maxGrowth = 48 << 20
	// maxDrained is how much of a body Go's server surely reads, also of a request whose first line it refuses.
	maxDrained = 1_000
)

// Whatever is wrong with a request, the answer has a status that the document names for the operation, and a form that the document
// describes. Nothing fails in the server, no error repeats a value of the request, and nothing stays in memory.
func TestOperations_SurviveBrokenRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tenant := storetest.Tenant(t)
	f := &fuzz{t: t, rig: r, random: rand.New(rand.NewPCG(*fuzzSeed, 0)), ids: r.furnish(t, tenant)}
	f.key = r.key(t, tenant, 0, credential.Scopes()...).Name
	text, err := httpapi.Document()
	require.NoError(t, err)
	f.document, err = selfcheck.Parse(text)
	require.NoError(t, err)
	f.schemas = compiled(t, text)
	var unreached []string
	before := heap()
	for _, op := range f.document.Operations() {
		r.schedule(t, tenant, f.ids["schedule"]) // an operation may have deleted it
		f.ids["key"] = r.key(t, tenant, 0, credential.ScopeRead).ID
		reached := 0
		for n := range *fuzzRequests {
			request := f.base(op)
			if n > 0 { // the first one is whole
				for range 1 + f.random.IntN(3) {
					f.spoil(op, request)
				}
			}
			if f.send(op, request, fmt.Sprintf("%s, request %d of -api.seed %d", op.ID, n, *fuzzSeed)) < http.StatusBadRequest {
				reached++
			}
		}
		if reached == 0 && !op.Open() { // a login needs an identity provider
			unreached = append(unreached, op.ID)
		}
	}
	require.Empty(t, unreached, "no request got through, so that only the front of these operations was tested")
	require.Less(t, heap()-before, int64(maxGrowth))
}

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// compiled returns a function that finds the schema at a place of the document.
func compiled(t *testing.T, document []byte) func(place string) *jsonschema.Schema {
	t.Helper()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("mem:///openapi.json", parsed))
	return func(place string) *jsonschema.Schema {
		schema, err := compiler.Compile("mem:///openapi.json#" + place)
		require.NoError(t, err, place)
		return schema
	}
}

// fuzz makes requests that are wrong.
type fuzz struct {
	t        *testing.T
	rig      *rig
	random   *rand.Rand
	document *selfcheck.Document
	schemas  func(place string) *jsonschema.Schema
	// ids are those of what there is, by what they name.
	ids map[string]string
	key string
}

// broken is a request before it is written.
type broken struct {
	method, path string
	query        [][2]string
	headers      [][2]string
	value        any
	// body counts instead of value if it is not nil.
	body []byte
	// elsewhere reports that the path may be that of another operation.
	elsewhere bool
}

// base returns a valid request of an operation.
func (f *fuzz) base(op *selfcheck.Operation) *broken {
	tool := "todo.write"
	if strings.HasPrefix(op.Path, "/api/tools/") { // its document, too
		tool = f.ids["tool"]
	}
	b := &broken{method: op.Method, path: strings.NewReplacer("{tool}", tool, "{kind}", "agent", "{name}", f.ids["agent"], "{type}", f.ids["entity_type"]).Replace(op.Path)}
	for kind, id := range f.ids {
		b.path = strings.ReplaceAll(b.path, "{"+kind+"}", id)
	}
	for _, p := range op.Parameters {
		if p.In == "query" && p.Required {
			value := cmp.Or(map[string]string{"call": "1.1", "from": f.ids["version"], "type": f.ids["entity_type"]}[p.Name], f.ids[p.Name], fmt.Sprint(f.document.Sample(p.Schema)))
			b.query = append(b.query, [2]string{p.Name, value})
		}
	}
	b.headers = [][2]string{{"If-Match", "*"}, {"Host", f.rig.listener.Addr().String()}, {"Authorization", "Bearer " + f.key}}
	if schema := f.document.BodySchema(op); schema != nil {
		b.value = f.document.Sample(schema)
		if object, ok := b.value.(map[string]any); ok {
			maps.Copy(object, f.valid()[op.ID])
		}
		b.headers = append(b.headers, [2]string{"Content-Type", "application/json"})
	}
	return b
}

// valid returns members without which the bodies of some operations are not valid, although their schemas do not say so.
func (f *fuzz) valid() map[string]map[string]any {
	return map[string]map[string]any{
		"start-session":      {"agent": f.ids["agent"]},
		"create-embed-token": {"tool": "todo.write", "origin": "https://shop.example.com"},
		"call-tool":          {"input": map[string]any{"items": []any{}}},
		"test-tool":          {"input": map[string]any{"items": []any{}}},
		"stream-tool-test":   {"input": map[string]any{"items": []any{}}},
		"run-composition":    {"name": "todo.write", "input": map[string]any{"items": []any{}}},
		"create-schedule":    {"tool": "todo.write", "every": "24h"},
		"restore-document":   {"version": f.ids["version"]},
		"check-policy":       {"document": "kind: policy\nname: probe\nrules: [{name: all, when: 'true', verdict: ask, reason: why}]\n"},
		"simulate-call":      {"tool": "todo.write", "document": "", "input": map[string]any{"items": []any{}}},
		"backtest-policy":    {"document": "kind: policy\nname: probe\nrules: [{name: all, when: 'true', verdict: ask, reason: why}]\n"},
	}
}

// spoil makes one thing of a request wrong.
func (f *fuzz) spoil(op *selfcheck.Operation, b *broken) {
	spoilers := []func(*selfcheck.Operation, *broken){f.spoilPath, f.spoilQuery, f.spoilHeader}
	if b.value != nil {
		spoilers = append(spoilers, f.spoilValue, f.spoilValue, f.spoilValue, f.spoilBytes, f.spoilBytes)
	}
	spoilers[f.random.IntN(len(spoilers))](op, b)
}

// value returns a text that is likely to break something.
func (f *fuzz) value() string {
	return one(f, []string{
		canary, "", " ", "0", "-1", "1e999", "9223372036854775808", "null", "true", "{}", "[]", "NaN", "2026-13-45T99:99:99Z", "1.1", "3.2/page[4]~1",
		canary + "\x00", canary + "\n\r\t", canary + "\u202e\u200b", canary + "é日本🙂", canary + "\xff\xfe", canary + "' or 1=1 --", canary + `"}\`,
		canary + "<script>", canary + "%s%n%d", canary + "${x}", "../../" + canary, canary + strings.Repeat("a", 300), strings.Repeat(canary, 500), f.ids["session"],
	})
}

func one[T any](f *fuzz, list []T) T { return list[f.random.IntN(len(list))] }

func (f *fuzz) spoilPath(op *selfcheck.Operation, b *broken) {
	segments := strings.Split(op.Path, "/")
	for i, s := range segments {
		if strings.HasPrefix(s, "{") {
			segments[i] = one(f, []string{url.PathEscape(f.value()), "%00" + canary, "%ff" + canary, canary + "%2F" + canary, canary + "%zz", canary + ";a=b", ".", "..", "%2e%2e", ""})
		}
	}
	b.path = strings.Join(segments, "/")
	if f.random.IntN(4) == 0 {
		b.elsewhere = true
		b.path = one(f, []string{b.path + "/", "/" + b.path, b.path + "/" + canary, strings.ToUpper(b.path), "*", "http://" + canary + b.path})
	}
}

func (f *fuzz) spoilQuery(op *selfcheck.Operation, b *broken) {
	names := []string{strange, "", "tenant"}
	for _, p := range op.Parameters {
		if p.In == "query" {
			names = append(names, p.Name, p.Name)
		}
	}
	for range 1 + f.random.IntN(2) {
		b.query = append(b.query, [2]string{one(f, names), f.value()})
	}
	if f.random.IntN(5) == 0 && len(b.query) > 0 {
		b.query = b.query[1:]
	}
}

func (f *fuzz) spoilHeader(op *selfcheck.Operation, b *broken) {
	names := []string{"Accept", "Accept-Encoding", "Content-Type", "Content-Encoding", "Host", "If-Match", "Range", "Expect", "Cookie", "Origin", "X-Forwarded-For", canary}
	for _, p := range op.Parameters {
		if p.In == "header" {
			names = append(names, p.Name, p.Name, p.Name)
		}
	}
	value := one(f, []string{
		f.value(), canary, "gzip", "application/cbor", "application/json; charset=utf-16", "text/event-stream", "*/*;q=0", "multipart/form-data; boundary=" + canary,
		"wait=1", "wait=-1, respond-async", "wait=99999999999999999999", strings.Repeat("x", MaxHeader+8<<10),
	})
	if f.random.IntN(10) > 0 { // most must get through Go's own check of headers
		value = strings.Map(func(r rune) rune {
			if r < ' ' {
				return -1
			}
			return r
		}, value)
	}
	b.headers = append(b.headers, [2]string{one(f, names), value})
}

// spoilValue changes a member of the body.
func (f *fuzz) spoilValue(op *selfcheck.Operation, b *broken) {
	object, ok := b.value.(map[string]any)
	if !ok {
		return
	}
	properties := f.document.Properties(f.document.BodySchema(op))
	names := []string{strange, "tenant", ""}
	for name := range properties {
		names = append(names, name, name, name)
	}
	slices.Sort(names)
	name := one(f, names)
	switch f.random.IntN(8) {
	case 0:
		delete(object, name)
	case 1, 2:
		object[name] = f.document.Sample(properties[name])
	case 3, 4:
		object[name] = f.value()
	case 5:
		object[name] = one(f, []any{nil, true, 0, -1, 1.5, json.Number("1e999"), json.Number("123456789012345678901234567890"), []any{canary}, map[string]any{strange: canary}, []any{}, map[string]any{}})
	case 6:
		var deep any = canary
		for range one(f, []int{10, 200, 9_000}) {
			deep = []any{deep}
		}
		object[name] = deep
	case 7:
		object[name] = strings.Repeat(canary, one(f, []int{10, 1_000, 50_000, 100_000}))
	}
}

// spoilBytes changes the written body.
func (f *fuzz) spoilBytes(_ *selfcheck.Operation, b *broken) {
	body := b.written()
	switch f.random.IntN(12) {
	case 0:
		body = body[:f.random.IntN(len(body)+1)]
	case 1:
		body = append(body, []byte(canary)...)
	case 2:
		body = append([]byte("\xef\xbb\xbf"), body...)
	case 3:
		body = bytes.ReplaceAll(body, []byte(`"`), []byte(`'`))
	case 4:
		body = []byte(strings.Repeat("[", 100_000))
	case 5:
		body = append(bytes.TrimSuffix(body, []byte("}")), []byte(`,"`+strange+`":"`+canary+`","`+strange+`":2}`)...)
	case 6:
		body = append(bytes.TrimSuffix(body, []byte("}")), []byte(`,"input":"\ud800"}`)...)
	case 7:
		body = append(bytes.TrimSuffix(body, []byte("}")), []byte(",\"input\":\""+canary+"\xff\xfe\x00\"}")...)
	case 8:
		body = bytes.Repeat([]byte(" "), httpapi.MaxBody+1)
	case 9:
		body = []byte(one(f, []string{"null", "1", `"` + canary + `"`, "[]", "", canary, "\x1f\x8b\x08\x00" + canary, "{}{}", "{\"a\":1}\n{}"}))
	case 10:
		for range 1 + f.random.IntN(4) {
			if len(body) > 0 {
				body[f.random.IntN(len(body))] = byte(f.random.IntN(256))
			}
		}
	case 11:
		b.headers = append(b.headers, [2]string{"Content-Length", one(f, []string{"0", "1", "-1", "9999999999", canary})})
	}
	b.body = body
}

func (b *broken) written() []byte {
	if b.body != nil || b.value == nil {
		return b.body
	}
	text, err := json.Marshal(b.value)
	if err != nil { // numbers that are no numbers
		return []byte(`{"input":1e999}`)
	}
	return text
}

// target returns the request's target. Some values are not encoded.
func (f *fuzz) target(b *broken) string {
	var parts []string
	for _, pair := range b.query {
		encoded := url.QueryEscape(pair[0]) + "=" + url.QueryEscape(pair[1])
		if f.random.IntN(8) == 0 {
			encoded = url.QueryEscape(pair[0]) + one(f, []string{"=%zz", "=%", "", "=;", "=%00", "=" + canary + "%ff"})
		}
		parts = append(parts, encoded)
	}
	if len(parts) == 0 {
		return b.path
	}
	return b.path + "?" + strings.Join(parts, "&")
}

// send makes a request on a connection of its own, checks the answer and returns its status.
func (f *fuzz) send(op *selfcheck.Operation, b *broken, which string) int {
	f.t.Helper()
	body := b.written()
	var text bytes.Buffer
	target := f.target(b)
	_, _ = fmt.Fprintf(&text, "%s %s HTTP/1.1\r\n", b.method, target)
	length := false
	for _, h := range b.headers {
		_, _ = fmt.Fprintf(&text, "%s: %s\r\n", h[0], h[1])
		length = length || h[0] == "Content-Length"
	}
	if !length {
		_, _ = fmt.Fprintf(&text, "Content-Length: %d\r\n", len(body))
	}
	text.WriteString("Connection: close\r\n\r\n")
	conn, err := net.DialTimeout("tcp", f.rig.listener.Addr().String(), 10*time.Second)
	require.NoError(f.t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(f.t, conn.SetDeadline(time.Now().Add(time.Minute)))
	whole := text.String() + string(body)
	// The server may close a connection that it cannot read to its end, and one whose first line it refuses.
	_, refused := url.ParseRequestURI(target)
	cut := length || len(body) > maxDrained || text.Len() > MaxHeader || !strings.HasPrefix(target, "/") || refused != nil
	written := make(chan struct{})
	go func() { // a server may answer before it has read everything
		defer close(written)
		_, _ = io.WriteString(conn, whole)                //nolint:errcheck // the server may close it early
		if tcp, ok := conn.(*net.TCPConn); ok && length { // the body may be shorter than promised
			_ = tcp.CloseWrite() //nolint:errcheck // it may be closed
		}
	}()
	answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: b.method})
	shown := fmt.Sprintf("%s:\n%.2000q", which, whole)
	if err != nil && cut {
		return http.StatusRequestEntityTooLarge
	}
	require.NoError(f.t, err, shown)
	defer func() { _ = answer.Body.Close() }()
	if answer.Header.Get("Content-Type") == "text/event-stream" {
		_ = conn.Close() // so that closing the body does not wait for the end of the stream
		return answer.StatusCode
	}
	content, err := io.ReadAll(io.LimitReader(answer.Body, 16<<20))
	if err != nil && cut {
		return answer.StatusCode
	}
	require.NoError(f.t, err, shown)
	_ = conn.Close()
	<-written
	f.judge(op, answer, content, shown, b.elsewhere)
	return answer.StatusCode
}

// judge checks an answer. elsewhere reports that another operation may have given it.
func (f *fuzz) judge(op *selfcheck.Operation, answer *http.Response, content []byte, shown string, elsewhere bool) {
	f.t.Helper()
	status := answer.StatusCode
	shown = fmt.Sprintf("%s\n-> %d %.1000s", shown, status, content)
	require.NotEqual(f.t, http.StatusInternalServerError, status, shown)
	if status >= http.StatusBadRequest || status >= 300 && status < 400 {
		require.NotContains(f.t, strings.ToLower(string(content)), strings.ToLower(canary), shown)
		require.Empty(f.t, answer.Header.Get("Location"), shown)
	}
	if media := answer.Header.Get("Content-Type"); media == "" || strings.HasPrefix(media, "text/plain") {
		if slices.Contains([]int{400, 417, 431, 501, 505}, status) { // Go's server has refused it before there was an operation
			return
		}
	}
	described, ok := op.Responses[strconv.Itoa(status)]
	if elsewhere || status == http.StatusNotFound || status == http.StatusMethodNotAllowed { // the path may be that of nothing, too
		return
	}
	require.True(f.t, ok, "the document does not name the status\n%s", shown)
	media := answer.Header.Get("Content-Type")
	if _, known := described.Content[media]; !known {
		require.Empty(f.t, content, shown)
		require.Empty(f.t, described.Content, shown)
		return
	}
	switch media {
	case "application/octet-stream":
		return
	case "application/x-ndjson":
		for line := range bytes.Lines(content) {
			require.True(f.t, json.Valid(line), shown)
		}
		return
	}
	escaped := strings.NewReplacer("~", "~0", "/", "~1")
	schema := f.schemas(fmt.Sprintf("/paths/%s/%s/responses/%d/content/%s/schema", escaped.Replace(op.Path), strings.ToLower(op.Method), status, escaped.Replace(media)))
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	require.NoError(f.t, err, shown)
	require.NoError(f.t, schema.Validate(value), shown)
}
