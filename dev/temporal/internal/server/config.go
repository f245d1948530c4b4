package server

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/membership/static"
	// The plugin registers itself under the name that the configuration uses.
	"go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
	"go.temporal.io/server/common/primitives"
)

const (
	loopback    = "127.0.0.1"
	clusterName = "active"
)

// addresses maps the four services to their addresses, host:port.
type addresses map[primitives.ServiceName]string

// addresses returns the addresses in the options, by service.
func (o Options) addresses() addresses {
	return addresses{
		primitives.FrontendService: o.Frontend, primitives.HistoryService: o.History,
		primitives.MatchingService: o.Matching, primitives.WorkerService: o.Worker,
	}
}

// internal returns the address under which the services of this process reach a service.
func (a addresses) internal(name primitives.ServiceName) string {
	host, number, err := net.SplitHostPort(a[name])
	if err != nil {
		return a[name]
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = loopback
	}
	return net.JoinHostPort(host, number)
}

// hosts returns the members of the cluster. The only member is this process, so there is no gossip.
func (a addresses) hosts() map[primitives.ServiceName]static.Hosts {
	hosts := make(map[primitives.ServiceName]static.Hosts, len(a))
	for name := range a {
		hosts[name] = static.SingleLocalHost(a.internal(name))
	}
	return hosts
}

// services configures the listeners. Temporal binds to IP addresses, so a host name is resolved here.
func (a addresses) services(ctx context.Context) (map[string]config.Service, error) {
	services := make(map[string]config.Service, len(a))
	for name, addr := range a {
		host, service, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, fmt.Errorf("the address %q of Temporal: %w", addr, err)
		}
		number, err := strconv.Atoi(service)
		if err != nil {
			return nil, fmt.Errorf("the address %q of Temporal: %w", addr, err)
		}
		if host == "" {
			host = "0.0.0.0"
		}
		if net.ParseIP(host) == nil {
			ips, err := net.DefaultResolver.LookupIP(ctx, "ip4", host)
			if err != nil {
				return nil, fmt.Errorf("the address %q of Temporal: %w", addr, err)
			}
			host = ips[0].String()
		}
		services[string(name)] = config.Service{RPC: config.RPC{GRPCPort: number, BindOnIP: host}}
	}
	return services, nil
}

// stores configures the connections to the two databases.
func stores(opts Options) (main, visibility config.SQL, err error) {
	db, err := parseDatabase(opts.DatabaseURL)
	if err != nil {
		return main, visibility, err
	}
	main = config.SQL{
		PluginName: postgresql.PluginNamePGX, DatabaseName: opts.Database,
		User: db.user, Password: db.password, ConnectAddr: db.addr, ConnectProtocol: "tcp", ConnectAttributes: db.attributes,
		MaxConns: opts.MaxConns, MaxIdleConns: opts.MaxConns,
	}
	visibility = main
	visibility.DatabaseName = opts.VisibilityDatabase
	return main, visibility, nil
}

// configure returns the static configuration of the server: one host, two databases, and no reports to Temporal's makers.
func configure(ctx context.Context, opts Options, at addresses, main, visibility config.SQL) (*config.Config, error) {
	services, err := at.services(ctx)
	if err != nil {
		return nil, err
	}
	frontend := at.internal(primitives.FrontendService)
	disabled := config.ArchivalNamespaceDefaults{
		History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
		Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
	}
	return &config.Config{
		Persistence: config.Persistence{
			DefaultStore: "main", VisibilityStore: "visibility", NumHistoryShards: opts.Shards,
			DataStores: map[string]config.DataStore{"main": {SQL: &main}, "visibility": {SQL: &visibility}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10, MasterClusterName: clusterName, CurrentClusterName: clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: frontend},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services:            services,
		Archival: config.Archival{
			History:    config.HistoryArchival{State: "disabled"},
			Visibility: config.VisibilityArchival{State: "disabled"},
		},
		PublicClient:      config.PublicClient{HostPort: frontend},
		NamespaceDefaults: config.NamespaceDefaults{Archival: disabled},
	}, nil
}
