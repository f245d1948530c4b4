// Package client replaces the client of worker controllers. This build has no worker controllers.
package client

import (
	"context"

	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/auto-scaled-workers/wci/workflow/iface"
	"go.temporal.io/server/common/namespace"
	"go.uber.org/fx"
)

// Client has the methods of the original interface that the server calls.
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

// DescribeWorkerControllerInstance returns NotFound, which means to the server that a version has no compute settings.
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

// DeleteWorkerControllerInstance does nothing.
func (none) DeleteWorkerControllerInstance(
	context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion, string,
) error {
	return nil
}
