package metrics_test

import (
	"testing"
	"time"

	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/metrics"
)

// BenchmarkCall measures what the metrics of one call cost: its attempt and its end.
func BenchmarkCall(b *testing.B) {
	m := metrics.New()
	m.KnowTools([]string{"file.write"})
	call := ended("file.write", "", 20*time.Millisecond)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			m.CallStarted("file.write", 1)
			m.CallEnded(call)
		}
	})
}

// BenchmarkModel measures what the metrics of one request to a model cost.
func BenchmarkModel(b *testing.B) {
	model := metrics.New().Model(answering{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := model.Answer(b.Context(), chat.Request{Model: "test/model"}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSDK measures what one request of Temporal's SDK costs: a handler with tags, a counter and a timer.
func BenchmarkSDK(b *testing.B) {
	h := metrics.New().Temporal()
	tags := map[string]string{"operation": "RespondActivityTaskCompleted"}
	b.ReportAllocs()
	for b.Loop() {
		one := h.WithTags(tags)
		one.Counter("temporal_request").Inc(1)
		one.Timer("temporal_request_latency").Record(time.Millisecond)
	}
}
