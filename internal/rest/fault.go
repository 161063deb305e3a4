package rest

import (
	"errors"
	"fmt"
	"net/http"
)

// fault is an answer that is an error. Class is the Java exception that Flink would throw, with which its text begins there; "": its text
// stands alone.
type fault struct {
	status int
	class  string
	text   string
}

const (
	restException     = "org.apache.flink.runtime.rest.handler.RestHandlerException"
	notFoundException = "org.apache.flink.runtime.rest.NotFoundException"
)

func (f *fault) Error() string { return f.text }

func (f *fault) body() string {
	if f.class == "" {
		return f.text
	}
	return f.class + ": " + f.text
}

// refuse is a fault of the handler's own.
func refuse(status int, format string, args ...any) *fault {
	return &fault{status: status, class: restException, text: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) *fault {
	return refuse(http.StatusBadRequest, format, args...)
}

func notFound(format string, args ...any) *fault {
	return &fault{status: http.StatusNotFound, class: notFoundException, text: fmt.Sprintf(format, args...)}
}

func faultOf(err error) *fault {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	return &fault{status: http.StatusInternalServerError, text: err.Error()}
}
