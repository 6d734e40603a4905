// Package tenant marks contexts with the tenant on whose behalf they write: "project shop", "user
// alice". The API server's client of etcd sends the marks with each write, because a key doesn't
// name the writer. A context without a mark is the platform's.
package tenant

import (
	"cmp"
	"context"
	"strings"

	"google.golang.org/grpc/metadata"
)

// Public is the tenant of unauthenticated clients of the login pages.
const Public = "public"

const (
	// nameKey is the key of the tenant in the metadata of requests to etcd. Names of users can have
	// any character, which requires the suffix.
	nameKey = "slipway-tenant-bin"
	// ownerKey is the key of the tenant's owner.
	ownerKey = "slipway-tenant-owner-bin"
	// noWaitKey exists if the writer must not wait for the tenant's other writes.
	noWaitKey = "slipway-tenant-no-wait"
	// deletesKey exists if the request deletes objects.
	deletesKey = "slipway-tenant-deletes"
)

const projectPrefix = "project "

// Project returns the tenant of a project.
func Project(name string) string { return projectPrefix + name }

// ProjectOf returns the project of a tenant. ok is false if the tenant is not a project.
func ProjectOf(name string) (project string, ok bool) { return strings.CutPrefix(name, projectPrefix) }

// User returns the tenant of a user who writes outside of projects.
func User(name string) string { return "user " + name }

// Mark identifies the tenant on whose behalf a request writes.
type Mark struct {
	// Name is the tenant. It is empty for the platform.
	Name string
	// Owner is the tenant who requested the project that Name names. All projects of an owner count
	// together against the limits for all tenants. It is empty if no user requested the project.
	Owner string
	// NoWait means that the writer is not the tenant, but a component of the platform that serves all
	// tenants. Its writes fail where the tenant's writes would wait.
	NoWait bool
	// Deletes means that the request deletes objects. Some objects are updated before they are
	// deleted.
	Deletes bool
}

// Share returns the name that counts for limits on all tenants together: the owner or, without an
// owner, the tenant.
func (m Mark) Share() string { return cmp.Or(m.Owner, m.Name) }

// With returns a context of requests to etcd with a mark, which replaces an earlier one.
func (m Mark) With(ctx context.Context) context.Context {
	outgoing, _ := metadata.FromOutgoingContext(ctx) // returns a copy
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

// Outgoing returns the mark of a context of requests to etcd.
func Outgoing(ctx context.Context) Mark {
	outgoing, _ := metadata.FromOutgoingContext(ctx)
	return of(outgoing)
}

// Incoming returns the mark of a request that etcd received.
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
