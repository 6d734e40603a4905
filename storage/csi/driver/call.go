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

// Call is one call of a driver that has ended.
type Call struct {
	// Driver is the name of the driver, empty before it is known.
	Driver string
	// Method is the full name of the method, such as "/csi.v1.Controller/CreateVolume".
	Method string
	// Code is how it ended.
	Code codes.Code
	// Duration is how long it took, waiting for a driver that is being restarted included.
	Duration time.Duration
}

// call gives every call its deadline, tells the observer, and takes secrets out of errors.
func (d *Driver) call(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(ctx, d.options.Timeout)
	defer cancel()
	start := time.Now()
	err := invoke(ctx, method, request, reply, connection, options...)
	answer := status.Convert(err)
	if d.options.Observe != nil {
		d.options.Observe(Call{Driver: d.name.get(), Method: method, Code: answer.Code(), Duration: time.Since(start)})
	}
	if err == nil {
		return nil
	}
	return &Error{Driver: d.who(), Method: method[strings.LastIndexByte(method, '/')+1:], Code: answer.Code(), Message: strip(answer.Message(), request)}
}

// who is the driver in errors: its name, or where it should be.
func (d *Driver) who() string {
	if name := d.name.get(); name != "" {
		return name
	}
	return d.Address
}

// stripped stands for the value of a secret.
const stripped = "***stripped***"

// strip takes the values of the secrets in a request out of a text. Fields that are secret are marked so in the specification of CSI.
func strip(text string, request any) string {
	message, ok := request.(proto.Message)
	if !ok {
		return text
	}
	values := secrets(message.ProtoReflect())
	// The longest first: one value may be part of another.
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	for _, value := range values {
		text = strings.ReplaceAll(text, value, stripped)
	}
	return text
}

// secrets are the values of all secret maps of a message.
func secrets(message protoreflect.Message) (values []string) {
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
