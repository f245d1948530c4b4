// Package config replaces the package that finds AWS credentials, which the server uses for archives in S3 and for signed
// requests to Elasticsearch. It never finds credentials.
package config

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
)

var errAbsent = errors.New("this server was built without AWS")

// LoadOptions has no options.
type LoadOptions struct{}

// EnvConfig is never returned without an error.
type EnvConfig struct{ Credentials aws.Credentials }

// LoadDefaultConfig returns an error.
func LoadDefaultConfig(context.Context, ...func(*LoadOptions) error) (aws.Config, error) {
	return aws.Config{}, errAbsent
}

// NewEnvConfig returns an error.
func NewEnvConfig() (EnvConfig, error) { return EnvConfig{}, errAbsent }

// WithRegion does nothing.
func WithRegion(string) func(*LoadOptions) error { return nothing }

// WithClientLogMode does nothing.
func WithClientLogMode(aws.ClientLogMode) func(*LoadOptions) error { return nothing }

func nothing(*LoadOptions) error { return nil }
