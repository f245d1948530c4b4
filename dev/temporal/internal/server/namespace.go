package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	persistencespb "go.temporal.io/server/api/persistence/v1"
	"go.temporal.io/server/common"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence"
	"go.temporal.io/server/common/persistence/serialization"
	"go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/common/resolver"
	"go.temporal.io/server/common/searchattribute/sadefs"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Namespace is a namespace with its search attributes.
type Namespace struct {
	// Name is the name of the namespace. If it is empty, no namespace is created.
	Name string
	// Retention is how long closed workflows are kept. It applies only when the namespace is created.
	Retention time.Duration
	// SearchAttributes maps names to Temporal's types, such as "Keyword".
	SearchAttributes map[string]string
}

// register creates the namespace and adds missing search attributes. It must run before the services start: each of them reads
// namespaces only when it starts and every two seconds, so that attributes which are added later cannot be used for a while.
func register(ctx context.Context, ns Namespace, main config.SQL, logger log.Logger) error {
	if ns.Name == "" {
		return nil
	}
	serializer := serialization.NewSerializer()
	factory := sql.NewFactory(main, resolver.NewNoopResolver(), clusterName, logger, metrics.NoopMetricsHandler, serializer)
	defer factory.Close()
	stored, err := factory.NewMetadataStore()
	if err != nil {
		return fmt.Errorf("connect to the database %s: %w", main.DatabaseName, err)
	}
	namespaces := persistence.NewMetadataManagerImpl(stored, serializer, logger, clusterName)
	found, err := namespaces.GetNamespace(ctx, &persistence.GetNamespaceRequest{Name: ns.Name})
	var missing *serviceerror.NamespaceNotFound
	switch {
	case errors.As(err, &missing):
		err = create(ctx, namespaces, ns)
	case err == nil:
		err = extend(ctx, namespaces, found, ns)
	}
	if err != nil {
		return fmt.Errorf("register the namespace %s: %w", ns.Name, err)
	}
	return nil
}

// create creates a namespace of this cluster.
func create(ctx context.Context, namespaces persistence.MetadataManager, ns Namespace) error {
	aliases, err := assign(nil, ns.SearchAttributes)
	if err != nil {
		return err
	}
	_, err = namespaces.CreateNamespace(ctx, &persistence.CreateNamespaceRequest{Namespace: &persistencespb.NamespaceDetail{
		Info: &persistencespb.NamespaceInfo{Id: primitives.NewUUID().String(), Name: ns.Name, State: enumspb.NAMESPACE_STATE_REGISTERED},
		Config: &persistencespb.NamespaceConfig{
			Retention:            durationpb.New(ns.Retention),
			HistoryArchivalState: enumspb.ARCHIVAL_STATE_DISABLED, VisibilityArchivalState: enumspb.ARCHIVAL_STATE_DISABLED,
			CustomSearchAttributeAliases: aliases,
		},
		ReplicationConfig: &persistencespb.NamespaceReplicationConfig{
			ActiveClusterName: clusterName, Clusters: []string{clusterName}, State: enumspb.REPLICATION_STATE_NORMAL,
		},
		FailoverVersion: common.EmptyVersion,
	}})
	return err //nolint:wrapcheck // the caller names the namespace
}

// extend adds the search attributes that an existing namespace does not have.
func extend(ctx context.Context, namespaces persistence.MetadataManager, found *persistence.GetNamespaceResponse, ns Namespace) error {
	existing := found.Namespace.GetConfig().GetCustomSearchAttributeAliases()
	aliases, err := assign(existing, ns.SearchAttributes)
	if err != nil || len(aliases) == len(existing) {
		return err
	}
	metadata, err := namespaces.GetMetadata(ctx)
	if err != nil {
		return err //nolint:wrapcheck // the caller names the namespace
	}
	found.Namespace.Config.CustomSearchAttributeAliases = aliases
	found.Namespace.ConfigVersion++
	//nolint:wrapcheck // the caller names the namespace
	return namespaces.UpdateNamespace(ctx, &persistence.UpdateNamespaceRequest{
		Namespace: found.Namespace, IsGlobalNamespace: found.IsGlobalNamespace, NotificationVersion: metadata.NotificationVersion,
	})
}

// assign gives each attribute without a column a free column of its type. Both maps of columns have the columns as keys and the
// names of attributes as values; the result contains the existing ones.
func assign(existing, attributes map[string]string) (map[string]string, error) {
	aliases := make(map[string]string, len(existing)+len(attributes))
	maps.Copy(aliases, existing)
	known := make(map[string]bool, len(existing))
	for _, name := range existing {
		known[name] = true
	}
	columns := sadefs.GetDBIndexSearchAttributes(nil).GetCustomSearchAttributes()
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if known[name] {
			continue
		}
		kind, err := enumspb.IndexedValueTypeFromString(attributes[name])
		if err != nil {
			return nil, fmt.Errorf("the type of the search attribute %s: %w", name, err)
		}
		column := ""
		for _, c := range slices.Sorted(maps.Keys(columns)) {
			if _, taken := aliases[c]; !taken && columns[c] == kind {
				column = c
				break
			}
		}
		if column == "" {
			return nil, fmt.Errorf("no column of type %s is left for the search attribute %s", attributes[name], name)
		}
		aliases[column] = name
	}
	return aliases, nil
}
