// Package tenant marks the contexts of writes with the tenant that the writes are for: "project
// shop" or "user alice". The API server's etcd client sends the marks with each write, because a
// key does not identify the writer. Writes with an unmarked context are attributed to the platform.
package tenant

import (
	"cmp"
	"context"
	"strings"

	"google.golang.org/grpc/metadata"
)

// Public is the tenant for unauthenticated clients of the login pages.
const Public = "public"

const (
	// nameKey is the metadata key for the tenant in requests to etcd. gRPC requires the -bin suffix,
	// because user names can contain any character.
	nameKey = "slipway-tenant-bin"
	// ownerKey is the metadata key for the tenant's owner.
	ownerKey = "slipway-tenant-owner-bin"
	// noWaitKey is present if the writer must not wait for the tenant's other writes.
	noWaitKey = "slipway-tenant-no-wait"
	// deletesKey is present if the request deletes objects.
	deletesKey = "slipway-tenant-deletes"
)

const projectPrefix = "project "

// Project returns the tenant for a project.
func Project(name string) string { return projectPrefix + name }

// ProjectOf returns a tenant's project. ok is false if the tenant is not a project.
func ProjectOf(name string) (project string, ok bool) { return strings.CutPrefix(name, projectPrefix) }

// User returns the tenant for a user who writes outside projects.
func User(name string) string { return "user " + name }

// Mark identifies the tenant that a request writes for.
type Mark struct {
	// Name is the tenant. It is empty for the platform.
	Name string
	// Owner is the tenant who requested the project that Name identifies. Limits across all tenants
	// apply to the sum of an owner's projects. Owner is empty if no user requested the project.
	Owner string
	// NoWait is set if the writer is not the tenant, but a platform component that serves all
	// tenants. If the tenant's writes would have to wait, the component's writes fail instead.
	NoWait bool
	// Deletes is set if the request deletes objects. This includes the update that precedes the
	// deletion of some objects.
	Deletes bool
}

// Share returns the name that limits across all tenants apply to: the owner or, without an owner,
// the tenant.
func (m Mark) Share() string { return cmp.Or(m.Owner, m.Name) }

// With returns a copy of ctx that adds the mark to requests to etcd. The mark replaces any earlier
// mark.
func (m Mark) With(ctx context.Context) context.Context {
	outgoing, _ := metadata.FromOutgoingContext(ctx) // FromOutgoingContext returns a copy
	if outgoing == nil {
		outgoing = metadata.MD{}
	}
	delete(outgoing, nameKey)
	delete(outgoing, ownerKey)
	delete(outgoing, noWaitKey)
	delete(outgoing, deletesKey)
	if m.Name != "" {
		outgoing.Set(nameKey, m.Name)
	}
	if m.Owner != "" {
		outgoing.Set(ownerKey, m.Owner)
	}
	if m.NoWait {
		outgoing.Set(noWaitKey, "true")
	}
	if m.Deletes {
		outgoing.Set(deletesKey, "true")
	}
	return metadata.NewOutgoingContext(ctx, outgoing)
}

// Outgoing returns the mark in a context for requests to etcd.
func Outgoing(ctx context.Context) Mark {
	outgoing, _ := metadata.FromOutgoingContext(ctx)
	return of(outgoing)
}

// Incoming returns the mark in a request that etcd received.
func Incoming(ctx context.Context) Mark {
	incoming, _ := metadata.FromIncomingContext(ctx)
	return of(incoming)
}

func of(md metadata.MD) Mark {
	mark := Mark{NoWait: len(md[noWaitKey]) > 0, Deletes: len(md[deletesKey]) > 0}
	if names := md[nameKey]; len(names) > 0 {
		mark.Name = names[0]
	}
	if owners := md[ownerKey]; len(owners) > 0 {
		mark.Owner = owners[0]
	}
	return mark
}
