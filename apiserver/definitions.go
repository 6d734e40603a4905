package apiserver

import (
	"reflect"
	"runtime"
	"strings"
	"unsafe"

	"github.com/emicklei/go-restful/v3"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
)

// KeepNoDefinitions prevents OpenAPI configurations from keeping definitions in memory. It sets the
// functions that identify operations by kube-openapi's route type. Otherwise, building the first
// document from a configuration would set functions that refer to all definitions.
// KeepNoDefinitions must be called before a document is built.
func KeepNoDefinitions(v2 *common.Config, v3 *common.OpenAPIV3Config) {
	v2.GetOperationIDAndTagsFromRoute = identify(v2.GetOperationIDAndTags)
	v3.GetOperationIDAndTagsFromRoute = identify(v3.GetOperationIDAndTags)
}

// identify adapts a function that returns a route's operation ID and tags to kube-openapi's route
// type.
func identify(operation func(*restful.Route) (string, []string, error)) func(common.Route) (string, []string, error) {
	return func(route common.Route) (id string, tags []string, err error) {
		return operation(route.(*restfuladapter.RouteAdapter).Route)
	}
}

// ReleaseDefinitions releases the OpenAPI definitions of a server's installed groups, and returns
// the number of groups that referred to them. The server needs the definitions only to install the
// groups, but the functions that destroy the groups' storage still refer to them.
// ReleaseDefinitions must be called before the server runs.
func ReleaseDefinitions(server *genericserver.GenericAPIServer) (released int) {
	functions := reflect.ValueOf(server).Elem().FieldByName("destroyFns")
	if !functions.IsValid() || functions.Type() != reflect.TypeFor[[]func()]() {
		return 0
	}
	for _, destroy := range *(*[]func())(unsafe.Pointer(functions.UnsafeAddr())) {
		if group := groupOf(destroy); group != nil && group.StaticOpenAPISpec != nil {
			group.StaticOpenAPISpec = nil
			released++
		}
	}
	return released
}

// groupOf returns the receiver of a method value that destroys a group's storage, or nil for any
// other function.
func groupOf(destroy func()) *genericserver.APIGroupInfo {
	name := runtime.FuncForPC(reflect.ValueOf(destroy).Pointer()).Name()
	if !strings.HasSuffix(name, ".(*APIGroupInfo).destroyStorage-fm") {
		return nil
	}
	// In Go's runtime, a method value is a pointer to a struct that contains a pointer to the code,
	// then the receiver.
	value := *(**struct {
		code     uintptr
		receiver *genericserver.APIGroupInfo
	})(unsafe.Pointer(&destroy))
	return value.receiver
}
