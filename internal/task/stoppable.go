package task

import (
	"context"

	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/storage"
)

// stoppable is a writer whose objects fail once the upload was dropped, so that a large one ends soon.
type stoppable struct {
	storage.Writer
	ctx    context.Context
	prefix string // of the names of objects: the operator and subtask
}

// Create implements storage.Writer.
func (s *stoppable) Create(name string) (storage.Object, error) {
	return s.create(s.Writer.Create, name)
}

// CreateFile implements storage.Writer.
func (s *stoppable) CreateFile(name string) (storage.Object, error) {
	return s.create(s.Writer.CreateFile, name)
}

// CreateShared implements storage.Writer.
func (s *stoppable) CreateShared(name string) (storage.Object, error) {
	return s.create(s.Writer.CreateShared, name)
}

func (s *stoppable) create(create func(string) (storage.Object, error), name string) (storage.Object, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	o, err := create(s.prefix + "-" + name)
	if err != nil {
		return nil, err
	}
	return &stoppableObject{Object: o, ctx: s.ctx}, nil
}

type stoppableObject struct {
	storage.Object
	ctx context.Context
}

// Write implements io.Writer.
func (o *stoppableObject) Write(p []byte) (int, error) {
	if err := o.ctx.Err(); err != nil {
		return 0, err
	}
	return o.Object.Write(p)
}

// Commit implements storage.Object.
func (o *stoppableObject) Commit() (snapshot.Handle, error) {
	if err := o.ctx.Err(); err != nil {
		o.Object.Abort()
		return snapshot.Handle{}, err
	}
	return o.Object.Commit()
}
