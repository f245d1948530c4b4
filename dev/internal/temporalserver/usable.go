package temporalserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	workflowservicepb "go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
)

// searchAttributes returns jig's search attributes, by name, with Temporal's types, as a new map.
func searchAttributes() map[string]string {
	return map[string]string{
		"JigTenant":  "Keyword",
		"JigAgent":   "Keyword",
		"JigStatus":  "Keyword",
		"JigTool":    "KeywordList",
		"JigPass":    "Int",
		"JigPending": "Int",
	}
}

// usable waits until the frontend answers queries with jig's search attributes. The program registered them before it started the
// services, which read the namespace when they start.
func usable(ctx context.Context, addr string, opts Options) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c, err := client.NewLazyClient(client.Options{
		HostPort: addr, Namespace: opts.Namespace, Logger: sdklog.NewStructuredLogger(opts.Log),
	})
	if err != nil {
		return fmt.Errorf("connect to Temporal: %w", err)
	}
	defer c.Close()
	err = insist(ctx, func() error {
		_, err := c.CountWorkflow(ctx, &workflowservicepb.CountWorkflowExecutionsRequest{
			Namespace: opts.Namespace, Query: everyAttribute(),
		})
		return err //nolint:wrapcheck // wrapped below
	})
	if err != nil {
		return fmt.Errorf("use jig's search attributes: %w", err)
	}
	return nil
}

// everyAttribute returns a query that names all search attributes, so it fails until the server knows all of them.
func everyAttribute() string {
	attributes := searchAttributes()
	terms := make([]string, 0, len(attributes))
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		value := "'x'"
		if attributes[name] == "Int" {
			value = "0"
		}
		terms = append(terms, name+" = "+value)
	}
	return strings.Join(terms, " AND ")
}

// insist repeats a call that may fail while the server is starting, until it succeeds or ctx ends.
func insist(ctx context.Context, call func() error) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := call()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (last: %w)", ctx.Err(), err)
		case <-ticker.C:
		}
	}
}
