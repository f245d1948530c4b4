package client

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// If a start was refused, its id can be used again: the workflow failed, and neither the store nor Temporal has a result.
func TestStart_IDOfARefusedStartIsFree(t *testing.T) {
	t.Parallel()
	const reject, again = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
	refused := jig.Errorf(jig.CodeNotFound, "there is no agent late")
	app := func(details ...any) error {
		return sdktemporal.NewNonRetryableApplicationError(refused.Message, string(refused.Code), nil, details...)
	}
	for name, play := range map[string]struct {
		status enumspb.WorkflowExecutionStatus
		stored bool
		ended  error
		want   enumspb.WorkflowIdReusePolicy
	}{
		"refused":                     {enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, false, app(*refused), again},
		"failed":                      {enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, true, app(*refused, protocol.PassResult{Passes: 1}), reject},
		"failed, and lost by a store": {enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, false, app(*refused, protocol.PassResult{Passes: 1}), reject},
		"terminated":                  {enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, false, app(), reject},
		"running":                     {enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, false, nil, reject},
	} {
		var got enumspb.WorkflowIdReusePolicy
		c := newTestClient(&fake{
			describe: func(string) (string, string, enumspb.WorkflowExecutionStatus, error) {
				return protocol.PassWorkflow, jig.DefaultTenant, play.status, nil
			},
			activity: func(_ sdk.StartActivityOptions, name string, _ any) (any, error) {
				if name == string(protocol.ReadStatus) && !play.stored {
					return nil, applicationError(jig.CodeNotFound, "there is no session")
				}
				return nil, nil
			},
			result: func() (any, error) { return nil, errors.Join(&sdktemporal.WorkflowExecutionError{}, play.ended) },
			start: func(o sdk.StartWorkflowOptions, _ protocol.PassInput) error {
				got = o.WorkflowIDReusePolicy
				return nil
			},
		})
		_, err := c.Start(t.Context(), StartOptions{ID: "order-7", Agent: "late", Task: "go"})
		require.NoError(t, err, name)
		require.Equal(t, play.want, got, name)
	}
}
