package driver

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Call is a completed driver call.
type Call struct {
	// Driver is the driver's name, or empty if the driver has not reported its name yet.
	Driver string
	// Method is the full name of the method, such as "/csi.v1.Controller/CreateVolume".
	Method string
	// Code is the gRPC status code.
	Code codes.Code
	// Duration includes the time spent waiting for a driver that is restarting.
	Duration time.Duration
}

// call performs a call with a timeout, notifies the observer, and redacts secrets in errors.
func (d *Driver) call(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(ctx, d.options.Timeout)
	defer cancel()
	start := time.Now()
	err := invoke(ctx, method, request, reply, connection, options...)
	st := status.Convert(err)
	if d.options.Observe != nil {
		d.options.Observe(Call{Driver: d.name.get(), Method: method, Code: st.Code(), Duration: time.Since(start)})
	}
	if err == nil {
		return nil
	}
	return &Error{Driver: d.displayName(), Method: method[strings.LastIndexByte(method, '/')+1:], Code: st.Code(), Message: redact(st.Message(), request)}
}

// displayName returns the driver's name for errors, or the driver's address if the driver has not
// reported its name yet.
func (d *Driver) displayName() string {
	if name := d.name.get(); name != "" {
		return name
	}
	return d.Address
}

// redacted replaces a secret value.
const redacted = "***stripped***"

// redact replaces the values of the request's secrets in text. The CSI specification marks secret
// fields with a field option.
func redact(text string, request any) string {
	message, ok := request.(proto.Message)
	if !ok {
		return text
	}
	values := secretValues(message.ProtoReflect())
	// Replace longer values first, because one value might contain another.
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	for _, value := range values {
		text = strings.ReplaceAll(text, value, redacted)
	}
	return text
}

// secretValues returns the values of all secret maps in a message.
func secretValues(message protoreflect.Message) (values []string) {
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if !field.IsMap() || !proto.GetExtension(field.Options(), csi.E_CsiSecret).(bool) {
			return true
		}
		value.Map().Range(func(_ protoreflect.MapKey, value protoreflect.Value) bool {
			if text := strings.TrimSpace(value.String()); text != "" {
				values = append(values, text)
			}
			return true
		})
		return true
	})
	return values
}
