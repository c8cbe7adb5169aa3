/* folder: creates and syncs the folders that contain files. */
#ifndef FILE_FOLDER_H
#define FILE_FOLDER_H

/* Creates missing folders of a path. Errors are detected when the file is opened. */
void wr_folder_create(char *path);

/* Forces the directory entries of a path's folder to disk, if possible. */
void wr_folder_sync(const char *path);

#endif
