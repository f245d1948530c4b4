// Package s3 replaces the client of S3, to which the server can archive histories. The server loads an AWS configuration before
// it makes a client, and the replacement of that package always fails, so nothing in this package is ever called.
package s3

import (
	"context"
	"errors"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

var errAbsent = errors.New("this server was built without S3")

type (
	// Client is a client of the service.
	Client struct{}
	// Options are the options of a client.
	Options struct {
		BaseEndpoint *string
		UsePathStyle bool
	}
	// HeadBucketInput names a bucket.
	HeadBucketInput struct{ Bucket *string }
	// HeadBucketOutput describes a bucket.
	HeadBucketOutput struct{}
	// HeadObjectInput names an object.
	HeadObjectInput struct{ Bucket, Key *string }
	// HeadObjectOutput describes an object.
	HeadObjectOutput struct{}
	// PutObjectInput is an object.
	PutObjectInput struct {
		Bucket, Key *string
		Body        io.Reader
	}
	// PutObjectOutput describes an object.
	PutObjectOutput struct{}
	// GetObjectInput names an object.
	GetObjectInput struct{ Bucket, Key *string }
	// GetObjectOutput is an object.
	GetObjectOutput struct{ Body io.ReadCloser }
	// ListObjectsV2Input selects objects.
	ListObjectsV2Input struct {
		Bucket, Prefix, Delimiter, ContinuationToken *string
		MaxKeys                                      *int32
	}
	// ListObjectsV2Output lists objects.
	ListObjectsV2Output struct {
		CommonPrefixes        []types.CommonPrefix
		Contents              []types.Object
		IsTruncated           *bool
		NextContinuationToken *string
	}
)

// NewFromConfig returns a client that does nothing.
func NewFromConfig(aws.Config, ...func(*Options)) *Client { return &Client{} }

// HeadBucket returns an error.
func (*Client) HeadBucket(context.Context, *HeadBucketInput, ...func(*Options)) (*HeadBucketOutput, error) {
	return nil, errAbsent
}

// HeadObject returns an error.
func (*Client) HeadObject(context.Context, *HeadObjectInput, ...func(*Options)) (*HeadObjectOutput, error) {
	return nil, errAbsent
}

// PutObject returns an error.
func (*Client) PutObject(context.Context, *PutObjectInput, ...func(*Options)) (*PutObjectOutput, error) {
	return nil, errAbsent
}

// GetObject returns an error.
func (*Client) GetObject(context.Context, *GetObjectInput, ...func(*Options)) (*GetObjectOutput, error) {
	return nil, errAbsent
}

// ListObjectsV2 returns an error.
func (*Client) ListObjectsV2(context.Context, *ListObjectsV2Input, ...func(*Options)) (*ListObjectsV2Output, error) {
	return nil, errAbsent
}
