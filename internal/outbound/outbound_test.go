package outbound_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/outbound"
)

func TestTransport_ReachesPublicAddressesOnly(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	host, _, _ := strings.Cut(address, ":")
	for name, tc := range map[string]struct {
		options outbound.Options
		reaches bool
	}{
		"only public addresses": {outbound.Options{}, false},
		"loopback":              {outbound.Options{AllowLoopback: true}, true},
		"a host":                {outbound.Options{AllowHosts: []string{" " + host}}, true},
		"a host and its port":   {outbound.Options{AllowHosts: []string{address}}, true},
		"another port":          {outbound.Options{AllowHosts: []string{host + ":1"}}, false},
		"another host":          {outbound.Options{AllowHosts: []string{"example.com"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			transport := outbound.Transport(tc.options)
			t.Cleanup(transport.CloseIdleConnections)
			client := &http.Client{Transport: transport}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			require.NoError(t, err)
			response, err := client.Do(request)
			if !tc.reaches {
				require.Error(t, err)
				require.True(t, outbound.Forbidden(err), err)
				return
			}
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
		})
	}
}

func TestTransport_IgnoresProxies(t *testing.T) {
	t.Parallel()
	require.Nil(t, outbound.Transport(outbound.Options{}).Proxy)
}
