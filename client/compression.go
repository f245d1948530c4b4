package client

import (
	"net"
	"strings"

	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
)

// EnvCompression says whether requests to Temporal are compressed: auto, on or off. Automatically, they are compressed unless the server is
// on this machine, where compressing costs both sides more than sending.
const EnvCompression = "JIG_TEMPORAL_COMPRESSION"

// compression returns the option for a value of [EnvCompression]. It returns nil for auto, which [DialTemporal] decides by the address.
func compression(value string) (sdk.GrpcCompression, error) {
	switch value {
	case "", "auto":
		return nil, nil // nil means that the setting does not decide
	case "on":
		return &sdk.GrpcCompressionGzip{}, nil
	case "off":
		return &sdk.GrpcCompressionNone{}, nil
	default:
		return nil, jig.Errorf(jig.CodeInvalidInput, "%s is not auto or on or off", EnvCompression).WithField(EnvCompression)
	}
}

// loopback reports whether an address, host:port, is on this machine. The empty address means [DefaultAddress].
func loopback(address string) bool {
	if address == "" {
		address = DefaultAddress
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || (ip != nil && ip.IsLoopback())
}
