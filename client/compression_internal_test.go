package client

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
)

func TestLoopback_IsRecognized(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "127.0.0.1:7233", "127.1.2.3:1", "[::1]:7233", "localhost:7233", "LocalHost:7233"} {
		require.True(t, loopback(address), address)
	}
	for _, address := range []string{
		"temporal:7233", "10.0.0.1:7233", "0.0.0.0:7233", "[2001:db8::1]:7233", "localhost.example.com:7233", "dns:///localhost:7233", "localhost", "127.0.0.1",
	} {
		require.False(t, loopback(address), address)
	}
}

// The server listens on the loopback address, so requests are compressed only if the setting says so.
func TestDialTemporal_CompressesAsTheSettingSays(t *testing.T) {
	t.Parallel()
	var encoding atomic.Pointer[string]
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := r.Header.Get("Grpc-Encoding")
		encoding.Store(&header)
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		_, _ = w.Write(make([]byte, 5)) //nolint:errcheck // an empty message; if the client is gone, the test fails anyway
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	for value, want := range map[string]string{"": "", "auto": "", "on": "gzip", "off": ""} {
		s, err := LoadSettings(SettingsRequest{
			Address: server.Listener.Addr().String(), Environ: []string{"TEMPORAL_CONFIG_FILE=/none", EnvCompression + "=" + value},
		})
		require.NoError(t, err)
		c, err := DialTemporal(t.Context(), s.Temporal, 0)
		require.NoError(t, err)
		c.Close()
		require.Equal(t, want, *encoding.Swap(nil), "%s=%s", EnvCompression, value)
	}
}

func TestLoadSettings_Compression(t *testing.T) {
	t.Parallel()
	none := "TEMPORAL_CONFIG_FILE=/none"
	s, err := LoadSettings(SettingsRequest{Environ: []string{none}, DevEnv: map[string]string{EnvCompression: "on"}})
	require.NoError(t, err)
	require.Equal(t, &sdk.GrpcCompressionGzip{}, s.Temporal.ConnectionOptions.GrpcCompression)
	s, err = LoadSettings(SettingsRequest{Environ: []string{none, EnvCompression + "=off"}, DevEnv: map[string]string{EnvCompression: "on"}})
	require.NoError(t, err)
	require.Equal(t, &sdk.GrpcCompressionNone{}, s.Temporal.ConnectionOptions.GrpcCompression)
	_, err = LoadSettings(SettingsRequest{Environ: []string{none, EnvCompression + "=gzip"}})
	require.ErrorIs(t, err, &jig.Error{Code: jig.CodeInvalidInput})
	require.ErrorContains(t, err, EnvCompression)
}
