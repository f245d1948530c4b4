package temporalserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	operatorservicepb "go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	workflowservicepb "go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"
)

// SearchAttributes returns jig's search attributes by name, as a new map.
func SearchAttributes() map[string]enumspb.IndexedValueType {
	return map[string]enumspb.IndexedValueType{
		"JigTenant":  enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"JigAgent":   enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"JigStatus":  enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"JigTool":    enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST,
		"JigPass":    enumspb.INDEXED_VALUE_TYPE_INT,
		"JigPending": enumspb.INDEXED_VALUE_TYPE_INT,
	}
}

// register creates the namespace and the search attributes unless they exist, and waits until they can be used.
func register(ctx context.Context, addr string, opts Options) error {
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
		_, err := c.WorkflowService().RegisterNamespace(ctx, &workflowservicepb.RegisterNamespaceRequest{
			Namespace: opts.Namespace, WorkflowExecutionRetentionPeriod: durationpb.New(opts.Retention),
		})
		var exists *serviceerror.NamespaceAlreadyExists
		if errors.As(err, &exists) {
			return nil
		}
		return err //nolint:wrapcheck // wrapped below
	})
	if err != nil {
		return fmt.Errorf("register the namespace %s: %w", opts.Namespace, err)
	}
	err = insist(ctx, func() error {
		_, err := c.OperatorService().AddSearchAttributes(ctx, &operatorservicepb.AddSearchAttributesRequest{
			Namespace: opts.Namespace, SearchAttributes: SearchAttributes(),
		})
		return err //nolint:wrapcheck // wrapped below
	})
	if err != nil {
		return fmt.Errorf("register jig's search attributes: %w", err)
	}
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
	attributes := SearchAttributes()
	terms := make([]string, 0, len(attributes))
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		value := "'x'"
		if attributes[name] == enumspb.INDEXED_VALUE_TYPE_INT {
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
