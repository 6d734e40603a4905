package kube

import (
	"context"
	"math"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"

	"github.com/slipway-platform/slipway/internal/tenant"
)

// reasonFull is the reason in the response to a write that the pacer rejects because the database
// is nearly full. A retry succeeds only after objects have been deleted.
const reasonFull metav1.StatusReason = "InsufficientStorage"

// full returns the pacer's error if the database is nearly full.
func full() error {
	return refused("the etcd database of the cluster is nearly full; delete objects, or ask an administrator of the cluster", 0)
}

// tooMany returns the pacer's error for a write that exceeds its tenant's rate. The error contains
// the delay after which the tenant can retry.
func (p *pacer) tooMany(name string, size int, cause error) error {
	delay := max(p.delay(p.tenant(name), size), time.Second)
	return refused("too many or too large objects are being written for "+name+": "+cause.Error()+"; try again later", delay)
}

// refused returns an etcd gRPC error. Its detail is the delay after which a retry can succeed, or 0
// if retries are useless.
func refused(message string, delay time.Duration) error {
	detailed, err := status.New(codes.ResourceExhausted, message).WithDetails(durationpb.New(delay))
	if err != nil { // the detail cannot be encoded
		return status.Error(codes.ResourceExhausted, message)
	}
	return detailed.Err()
}

// response converts a pacer error to an API error, and returns any other error unchanged.
//
// Kubernetes clients retry a request after the number of seconds in the response. Responses to
// platform components contain 0 seconds, so that these components do not retry. Otherwise, the
// scheduler and kubelets would wait for a tenant, and the API server would be busy with requests to
// itself.
func response(ctx context.Context, err error) error {
	state, ok := status.FromError(err)
	if err == nil || !ok || state.Code() != codes.ResourceExhausted {
		return err
	}
	for _, detail := range state.Details() {
		duration, ok := detail.(*durationpb.Duration)
		if !ok {
			continue
		}
		delay := duration.AsDuration()
		if delay == 0 {
			return &apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: reasonFull, Message: state.Message(),
			}}
		}
		seconds := int(math.Ceil(delay.Seconds()))
		if caller, ok := request.UserFrom(ctx); tenant.Outgoing(ctx).NoWait || ok && caller.GetName() == user.APIServerUser {
			seconds = 0
		}
		return apierrors.NewTooManyRequests(state.Message(), seconds)
	}
	return err
}

// pacedStorage converts the pacer's errors to API errors.
type pacedStorage struct{ storage.Interface }

// Create implements storage.Interface.
func (s pacedStorage) Create(ctx context.Context, key string, object, out runtime.Object, seconds uint64) error {
	return response(ctx, s.Interface.Create(ctx, key, object, out, seconds))
}

// Delete implements storage.Interface.
func (s pacedStorage) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, existing runtime.Object, options storage.DeleteOptions) error {
	return response(ctx, s.Interface.Delete(ctx, key, out, preconditions, validate, existing, options))
}

// GuaranteedUpdate implements storage.Interface.
func (s pacedStorage) GuaranteedUpdate(ctx context.Context, key string, into runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, existing runtime.Object) error {
	return response(ctx, s.Interface.GuaranteedUpdate(ctx, key, into, ignoreNotFound, preconditions, update, existing))
}
