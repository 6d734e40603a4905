package apiserver

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericserver "k8s.io/apiserver/pkg/server"
)

func TestRoutesServeWithoutMatchers(t *testing.T) {
	service := new(restful.WebService).Path("/apis/example.com/v1")
	respond := func(text string) restful.RouteFunction {
		return func(request *restful.Request, response *restful.Response) {
			_, _ = response.Write([]byte(text + request.PathParameter("name") + request.PathParameter("path")))
		}
	}
	service.Route(service.GET("/things/{name}").To(respond("get ")))
	service.Route(service.DELETE("/things/{name}").To(respond("delete ")))
	service.Route(service.GET("/things/{name}/proxy/{path:*}").To(respond("proxy ")))
	service.Route(service.GET("/things").To(respond("list")))
	if released := ReleaseMatchers([]*restful.WebService{service}); released != 4 {
		t.Errorf("%d routes have released their matchers, want 4", released)
	}
	for _, route := range service.Routes() {
		if matcher := matcherOf(&route); matcher == nil || *matcher != unusedMatcher {
			t.Errorf("%s %s has its own matcher", route.Method, route.Path)
		}
	}
	container := restful.NewContainer()
	container.Router(restful.CurlyRouter{})
	container.Add(service)
	for request, want := range map[[2]string]string{
		{http.MethodGet, "/apis/example.com/v1/things/a"}:           "get a",
		{http.MethodDelete, "/apis/example.com/v1/things/a"}:        "delete a",
		{http.MethodGet, "/apis/example.com/v1/things/a/proxy/b/c"}: "proxy ab/c",
		{http.MethodGet, "/apis/example.com/v1/things"}:             "list",
	} {
		response := httptest.NewRecorder()
		container.ServeHTTP(response, httptest.NewRequest(request[0], request[1], nil))
		if got := response.Body.String(); got != want {
			t.Errorf("%v returns %q, want %q", request, got, want)
		}
	}
}

// Servers must not use RouterJSR311, because it requires the regular expressions that
// ReleaseMatchers releases.
func TestServersUseRouterWithoutMatchers(t *testing.T) {
	scheme := runtime.NewScheme()
	handler := genericserver.NewAPIServerHandler("test", serializer.NewCodecFactory(scheme), func(next http.Handler) http.Handler { return next }, nil)
	router := reflect.ValueOf(handler.GoRestfulContainer).Elem().FieldByName("router").Elem()
	if want := reflect.TypeFor[restful.CurlyRouter](); router.Type() != want {
		t.Errorf("the API server's router is %s, want %s", router.Type(), want)
	}
}
