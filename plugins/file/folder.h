/* folder: the folders that files are in. */
#ifndef FILE_FOLDER_H
#define FILE_FOLDER_H

/* Creates the folders of a path that are missing. What fails is noticed when the file is opened. */
void wr_folder_create(char *path);

/* Forces the names in the folder of a path to the disk, where that can be done. */
void wr_folder_sync(const char *path);

#endif
