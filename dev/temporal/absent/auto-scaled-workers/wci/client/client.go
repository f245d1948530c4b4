// Package client stands in for the client of worker controllers: there are none.
package client

import (
	"context"

	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/auto-scaled-workers/wci/workflow/iface"
	"go.temporal.io/server/common/namespace"
	"go.uber.org/fx"
)

// Client is what the server calls of the original interface.
type Client interface {
	DescribeWorkerControllerInstance(
		ctx context.Context, in *namespace.Namespace, version *deploymentpb.WorkerDeploymentVersion,
	) (*iface.QueryDescribeWorkerControllerInstanceResponse, []byte, error)
	ValidateWorkerControllerInstanceSpec(
		ctx context.Context, in *namespace.Namespace, version *deploymentpb.WorkerDeploymentVersion, identity string,
		upsert map[string]iface.ScalingGroupSpecUpdate, remove []string,
	) error
	UpdateWorkerControllerInstance(
		ctx context.Context, in *namespace.Namespace, version *deploymentpb.WorkerDeploymentVersion, conflictToken []byte,
		identity string, upsert map[string]iface.ScalingGroupSpecUpdate, remove []string,
	) (*iface.UpdateWorkerControllerInstanceResponse, error)
	DeleteWorkerControllerInstance(
		ctx context.Context, in *namespace.Namespace, version *deploymentpb.WorkerDeploymentVersion, identity string,
	) error
}

// Module provides the Client.
var Module = fx.Options(fx.Provide(func() Client { return none{} }))

// errAbsent is an InvalidArgument, which the server does not retry.
var errAbsent = serviceerror.NewInvalidArgument("this server was built without compute providers")

// none has no controllers.
type none struct{}

// DescribeWorkerControllerInstance returns NotFound, which the server takes for a version without compute settings.
func (none) DescribeWorkerControllerInstance(
	context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion,
) (*iface.QueryDescribeWorkerControllerInstanceResponse, []byte, error) {
	return nil, nil, serviceerror.NewNotFound("this server has no worker controllers")
}

// ValidateWorkerControllerInstanceSpec refuses every spec.
func (none) ValidateWorkerControllerInstanceSpec(
	context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion, string,
	map[string]iface.ScalingGroupSpecUpdate, []string,
) error {
	return errAbsent
}

// UpdateWorkerControllerInstance refuses every spec.
func (none) UpdateWorkerControllerInstance(
	context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion, []byte,
	string, map[string]iface.ScalingGroupSpecUpdate, []string,
) (*iface.UpdateWorkerControllerInstanceResponse, error) {
	return nil, errAbsent
}

// DeleteWorkerControllerInstance has nothing to delete.
func (none) DeleteWorkerControllerInstance(
	context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion, string,
) error {
	return nil
}
