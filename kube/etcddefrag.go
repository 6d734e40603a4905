package kube

import (
	"context"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// snapshotGuard rejects a defragmentation while a snapshot is being sent. Otherwise, etcd would
// serve no requests until the snapshot has been sent, which can take a long time with a slow
// client.
type snapshotGuard struct{ snapshots atomic.Int32 }

// interceptStream counts the snapshots that are being sent. It implements
// grpc.StreamServerInterceptor.
func (g *snapshotGuard) interceptStream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if info.FullMethod == etcdserverpb.Maintenance_Snapshot_FullMethodName {
		g.snapshots.Add(1)
		defer g.snapshots.Add(-1)
	}
	return next(server, stream)
}

// intercept implements grpc.UnaryServerInterceptor.
func (g *snapshotGuard) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if info.FullMethod == etcdserverpb.Maintenance_Defragment_FullMethodName && g.snapshots.Load() > 0 {
		return nil, status.Error(codes.FailedPrecondition, "a snapshot of this member is being saved; repeat the defragmentation afterwards")
	}
	return next(ctx, request)
}
