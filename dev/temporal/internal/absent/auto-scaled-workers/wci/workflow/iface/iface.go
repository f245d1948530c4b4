// Package iface declares the types of compute providers that the server's worker deployments name.
package iface

import (
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
)

type (
	// ComputeProviderType names a provider.
	ComputeProviderType string
	// ScalingAlgorithmType names an algorithm.
	ScalingAlgorithmType string
	// ValidationResult says how a validation ended.
	ValidationResult string
)

// ValidationResultFailed is a validation that found an error.
const ValidationResultFailed ValidationResult = "failed"

// ComputeProviderSpec configures a provider.
type ComputeProviderSpec struct {
	ProviderType  ComputeProviderType `json:"provider_type,omitempty"`
	Config        *commonpb.Payload   `json:"config,omitempty"`
	NexusEndpoint string              `json:"nexus_endpoint,omitempty"`
}

// ScalingAlgorithmSpec configures an algorithm.
type ScalingAlgorithmSpec struct {
	ScalingAlgorithm ScalingAlgorithmType `json:"scaling_algorithm,omitempty"`
	Config           *commonpb.Payload    `json:"config,omitempty"`
}

// ScalingGroupSpec assigns a provider and an algorithm to types of tasks.
type ScalingGroupSpec struct {
	TaskTypes []enumspb.TaskQueueType `json:"task_types"`
	Compute   ComputeProviderSpec     `json:"compute"`
	Scaling   *ScalingAlgorithmSpec   `json:"scaling,omitempty"`
}

// ScalingGroupSpecUpdate changes fields of a group.
type ScalingGroupSpecUpdate struct {
	Spec       ScalingGroupSpec `json:"spec"`
	UpdateMask []string         `json:"update_mask"`
}

// WorkerControllerInstanceSpec holds the groups of a worker deployment version.
type WorkerControllerInstanceSpec struct {
	ScalingGroupSpecs map[string]ScalingGroupSpec `json:"scaling_group_specs"`
}

// QueryDescribeWorkerControllerInstanceResponse describes a version's controller.
type QueryDescribeWorkerControllerInstanceResponse struct {
	Spec             *WorkerControllerInstanceSpec `json:"spec,omitempty"`
	ValidationStatus *ValidationStatus             `json:"validation_state,omitempty"`
}

// UpdateWorkerControllerInstanceResponse holds the spec after an update.
type UpdateWorkerControllerInstanceResponse struct {
	Spec *WorkerControllerInstanceSpec `json:"spec,omitempty"`
}

// ValidationStatus is the outcome of the last validation.
type ValidationStatus struct {
	LastValidationTime time.Time        `json:"last_validation_time"`
	Status             ValidationResult `json:"status"`
	ErrMessage         string           `json:"err_message,omitempty"`
}
